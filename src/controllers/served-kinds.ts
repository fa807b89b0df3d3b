/** What kinds the server serves, for controllers that are about any of them. */
import type { ApiClient } from '#client/api-client.ts'
import { discover, type ServedKind } from '#client/discovery.ts'
import type { GroupKind } from '#meta/kind.ts'

/** As upstream's manager forgets what it knows of the kinds that are served. */
const FRESH_MS = 30_000

/** Asked for anew from time to time, and whenever something is not found. */
export class ServedKinds {
  readonly #client: ApiClient
  #kinds: Promise<readonly ServedKind[]> = Promise.resolve([])
  #askedMs = -Infinity

  constructor(client: ApiClient) {
    this.#client = client
  }

  /** In all versions, the preferred one first. */
  ofKind({ group, kind }: GroupKind): Promise<ServedKind[]> {
    return this.find((kinds) => kinds.filter((one) => one.kind === kind && one.group === group))
  }

  /** The versions of a group, the preferred one first. */
  async versionsOf(group: string): Promise<string[]> {
    const kinds = await this.find((all) => all.filter((one) => one.group === group))
    return [...new Set(kinds.map(({ version }) => version))]
  }

  /** What is found among them; asked again, with what is served by now, when it is nothing. */
  async find<T>(pick: (kinds: readonly ServedKind[]) => T[]): Promise<T[]> {
    const { clock } = this.#client
    const isOld = clock.elapsed() - this.#askedMs >= FRESH_MS
    const known = isOld ? [] : pick(await this.#kinds)
    if (known.length > 0) return known
    this.#askedMs = clock.elapsed()
    this.#kinds = discover(this.#client).then(({ kinds }) => kinds)
    // Whoever asks next asks anew.
    this.#kinds.catch(() => (this.#askedMs = -Infinity))
    return pick(await this.#kinds)
  }
}
