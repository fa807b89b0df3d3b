/**
 * Ledger: claims and volumes as they are, as far as known here: as the cache has them, or as they came back from our own last
 * write, whichever is newer. Without it a claim would be looked at again before the cache has heard of the volume that
 * was just bound to it, and get a second one.
 */
import type { PersistentVolume, PersistentVolumeClaim } from '#apis/core/v1.ts'
import type { Kind } from '#apis/kinds.ts'
import { objectKey } from '#meta/object.ts'

import type { Cache } from '../cache.ts'
import type { ControllerContext } from '../controller.ts'

type Entry = PersistentVolume | PersistentVolumeClaim

export class Ledger<T extends Entry> {
  readonly #kind: Kind<T>
  readonly #cache: Cache
  /** What was written and may not have been seen yet. */
  readonly #written = new Map<string, T>()

  constructor(kind: Kind<T>, cache: Cache) {
    this.#kind = kind
    this.#cache = cache
  }

  get(key: string): T | undefined {
    return this.#newest(key, this.#cache.get(this.#kind, key))
  }

  /** Each of them as it is. */
  *newest(cached: Iterable<T>): Generator<T> {
    for (const object of cached) {
      const newest = this.#newest(objectKey(object), object)
      if (newest !== undefined) yield newest
    }
  }

  /** Those whose last write the cache has not shown yet. */
  unseen(): T[] {
    return [...this.#written.keys()].map((key) => this.get(key)).filter((object) => object !== undefined)
  }

  /** Whether the cache shows something older than what was written: it will show that soon, and then is the time. */
  isBehind(key: string): boolean {
    return this.get(key) !== this.#cache.get(this.#kind, key)
  }

  /** Writes it, guarded by the version it was made from. */
  async write(object: T, { client, signal }: ControllerContext, subresource?: 'status'): Promise<T> {
    const options = { signal, ...(subresource !== undefined && { subresource }) }
    const written = await client.update(this.#kind, object, options)
    this.#written.set(objectKey(written), written)
    return written
  }

  #newest(key: string, cached: T | undefined): T | undefined {
    const written = this.#written.get(key)
    if (written === undefined) return cached
    const isSame = cached?.metadata.uid === written.metadata.uid
    if (isSame && versionOf(written) > versionOf(cached)) return written
    this.#written.delete(key)
    return cached
  }
}

function versionOf(object: Entry | undefined): bigint {
  return BigInt(object?.metadata.resourceVersion ?? '0')
}
