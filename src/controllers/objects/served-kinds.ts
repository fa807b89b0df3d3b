/** Caches discovery, for controllers that handle any kind. */
import type { ApiClient } from '#client/api-client.ts'
import { discover, type ServedKind } from '#client/discovery.ts'
import type { GroupKind } from '#meta/kind.ts'

/** The cache lifetime, as upstream's manager. */
const FRESH_MS = 30_000

/** Refreshed periodically, and when a lookup finds nothing. */
export class ServedKinds {
  readonly #client: ApiClient
  #kinds: Promise<readonly ServedKind[]> = Promise.resolve([])
  #discoveredMs = -Infinity

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

  /** Runs `pick`; if it finds nothing, refreshes and runs it again. */
  async find<T>(pick: (kinds: readonly ServedKind[]) => T[]): Promise<T[]> {
    const { clock } = this.#client
    const isOld = clock.elapsed() - this.#discoveredMs >= FRESH_MS
    const known = isOld ? [] : pick(await this.#kinds)
    if (known.length > 0) return known
    this.#discoveredMs = clock.elapsed()
    this.#kinds = discover(this.#client).then(({ kinds }) => kinds)
    // A failed discovery is not cached.
    this.#kinds.catch(() => (this.#discoveredMs = -Infinity))
    return pick(await this.#kinds)
  }
}
