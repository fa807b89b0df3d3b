/** Informers shared by all who watch the same kind, so that each object is held once. */
import type { Kind } from '#apis/kinds.ts'
import type { Random } from '#lib/random.ts'
import { kindKey } from '#meta/kind.ts'
import type { KubeObject } from '#meta/object.ts'

import type { ApiClient } from './api-client.ts'
import { Informer, type InformerOptions } from './informer.ts'

export interface InformersOptions {
  readonly client: ApiClient
  readonly random: Random
  /** Ends all of them. */
  readonly signal: AbortSignal
  /** What is kept of a kind, and of which of its objects. Default: all of all. */
  readonly tailor?: (kind: Kind) => Tailoring
  readonly onError: (error: unknown, kind: Kind) => void
}

export type Tailoring = Pick<InformerOptions<KubeObject>, 'selection' | 'metadataOnly' | 'transform' | 'indexes'>

export class Informers {
  readonly #options: InformersOptions
  readonly #informers = new Map<string, { readonly informer: Informer<KubeObject>; readonly running: Promise<void> }>()

  constructor(options: InformersOptions) {
    this.#options = options
  }

  /** Begins to follow the kind when somebody first asks for it. */
  of<T extends KubeObject>(kind: Kind<T>): Informer<T> {
    const key = kindKey(kind)
    const { client, random, signal, tailor, onError } = this.#options
    let found = this.#informers.get(key)
    if (found === undefined) {
      const informer = new Informer<KubeObject>({
        client,
        kind,
        random,
        onError: (error) => onError(error, kind),
        ...tailor?.(kind),
      })
      found = { informer, running: informer.run(signal) }
      this.#informers.set(key, found)
    }
    // Under this key there are only objects of this kind.
    return found.informer as unknown as Informer<T>
  }

  /** Shows a change before the watch tells of it, if the kind is followed: see `Informer.learn`. */
  learn(kind: Kind, object: KubeObject): void {
    this.#informers.get(kindKey(kind))?.informer.learn(object)
  }

  /** Resolves when those of these kinds have seen what was there. */
  async synced(kinds: readonly Kind[]): Promise<void> {
    await Promise.all(kinds.map((kind) => this.of(kind).synced))
  }

  /** Resolves when all have ended, after the signal. */
  async ended(): Promise<void> {
    await Promise.all(Array.from(this.#informers.values(), ({ running }) => running))
  }
}
