/**
 * Maps names and kinds to served resources. Discovery is cached in a file for six hours. If a name is missing there,
 * the mapper repeats discovery before it fails.
 */
import { readFileSync, statSync } from 'node:fs'
import { dirname } from 'node:path'

import type { ApiClient } from '#client/api-client.ts'
import { type DiscoveryResult, discover, type ServedKind } from '#client/discovery.ts'
import { goQuote } from '#lib/go/text.ts'
import { parseApiVersion } from '#meta/kind.ts'

import { KubectlError } from '../errors.ts'
import { findNamed, preferred } from './resource-names.ts'

/** The lifetime of upstream's cache. */
const TRUSTED_MS = 6 * 3600_000

/** An object has a kind that the server does not serve. */
export class NoKindError extends KubectlError {
  override readonly name: string = 'NoKindError'
}

export interface MapperOptions {
  readonly client: ApiClient
  /** The file for cached discovery; undefined disables the cache. */
  readonly cacheFile?: string
  readonly signal?: AbortSignal
  /** Called if a short name is ambiguous. */
  readonly onAmbiguous?: (text: string) => void
}

export class Mapper {
  readonly #options: MapperOptions
  #found: Promise<DiscoveryResult> | undefined
  #isFresh = false

  constructor(options: MapperOptions) {
    this.#options = options
  }

  /** All served resources, the core group first, in the server's order of preference. */
  async kinds(): Promise<readonly ServedKind[]> {
    return (await this.#discovered()).kinds
  }

  /** The same, including groups that failed, possibly from the cache. */
  known(): Promise<DiscoveryResult> {
    return this.#discovered()
  }

  /** The same, directly from the server. */
  async freshKinds(): Promise<DiscoveryResult> {
    if (!this.#isFresh) this.#refresh()
    return this.#discovered()
  }

  /** `po`, `pods`, `deploy.apps`, `deployments.v1.apps`, `Pod`. Throws KubectlError. */
  async named(text: string): Promise<ServedKind> {
    const found = await this.find(text)
    if (found !== undefined) return found
    throw new KubectlError(`the server doesn't have a resource type ${goQuote(text.split('.')[0] ?? '')}`)
  }

  /** The same; undefined if the server has no such resource. */
  async find(text: string): Promise<ServedKind | undefined> {
    const found = await this.#lookup((kinds) => findNamed(kinds, text))
    const shortName = goQuote(text.split('.')[0] ?? '')
    for (const other of found?.alsoNamed ?? []) {
      this.#options.onAmbiguous?.(`short name ${shortName} could also match lower priority resource ${other}`)
    }
    return found?.kind
  }

  /** The resource for a kind and version. Throws NoKindError. */
  async ofObject(apiVersion: string, kind: string): Promise<ServedKind> {
    const { group, version } = parseApiVersion(apiVersion)
    const fits = (one: ServedKind): boolean => one.kind === kind && one.group === group && one.version === version
    const found = await this.#lookup((kinds) => kinds.find(fits))
    if (found !== undefined) return found
    throw new NoKindError(`no matches for kind ${goQuote(kind)} in version ${goQuote(apiVersion)}`)
  }

  /** The kind in the server's preferred version. Throws NoKindError. */
  async ofKind(group: string, kind: string): Promise<ServedKind> {
    const found = await this.#lookup((kinds) =>
      preferred(kinds.filter((one) => one.kind === kind && one.group === group)),
    )
    if (found !== undefined) return found
    throw new NoKindError(`no matches for kind ${goQuote(kind)} in group ${goQuote(group)}`)
  }

  /** The resources of a category such as `all`, as `resource.group`; undefined if it does not exist. */
  async category(name: string): Promise<string[] | undefined> {
    const kinds = (await this.kinds()).filter(({ categories }) => categories?.includes(name))
    const names = kinds.map(({ plural, group }) => (group === '' ? plural : `${plural}.${group}`))
    return names.length === 0 ? undefined : [...new Set(names)]
  }

  async #lookup<T>(find: (kinds: readonly ServedKind[]) => T | undefined): Promise<T | undefined> {
    const found = find(await this.kinds())
    if (found !== undefined || this.#isFresh) return found
    return find((await this.freshKinds()).kinds)
  }

  #refresh(): void {
    this.#found = this.#ask()
    this.#isFresh = true
  }

  async #discovered(): Promise<DiscoveryResult> {
    this.#found ??= Promise.resolve(this.#cached() ?? this.#ask())
    return this.#found
  }

  #cached(): DiscoveryResult | undefined {
    const { cacheFile, client } = this.#options
    if (cacheFile === undefined) return undefined
    try {
      if (client.clock.now() - statSync(cacheFile).mtimeMs > TRUSTED_MS) return undefined
      return JSON.parse(readFileSync(cacheFile, 'utf8')) as DiscoveryResult
    } catch {
      // The cache is missing or broken: ask the server.
      return undefined
    }
  }

  async #ask(): Promise<DiscoveryResult> {
    const { client, cacheFile, signal } = this.#options
    const found = await discover(client, signal)
    this.#isFresh = true
    if (cacheFile !== undefined) await keep(cacheFile, found)
    return found
  }
}

/** Failures to write the cache are ignored. */
async function keep(file: string, found: DiscoveryResult): Promise<void> {
  try {
    const [{ mkdir }, { writeFileAtomically }] = await Promise.all([
      import('node:fs/promises'),
      import('#lib/files/atomic-file.ts'),
    ])
    await mkdir(dirname(file), { recursive: true, mode: 0o750 })
    await writeFileAtomically(file, JSON.stringify(found), { mode: 0o660 })
  } catch {
    // See above.
  }
}
