/**
 * Caches objects with the changes that this scheduler has made but its informer has not delivered yet. Later decisions
 * use them.
 */
import type { Informer } from '#client/informer.ts'
import { type KubeObject, objectKey } from '#meta/object.ts'

export class Assumptions<T extends KubeObject> {
  readonly #informer: Informer<T>
  /** An assumed object is valid until the informer has a newer version than the one it was made from. */
  readonly #assumed = new Map<string, { readonly object: T; readonly from: T }>()

  constructor(informer: Informer<T>) {
    this.#informer = informer
  }

  get(key: string): T | undefined {
    const from = this.#informer.get(key)
    return from === undefined ? undefined : this.seen(from)
  }

  /** The assumed object, else the cached one. */
  seen(from: T): T {
    const assumed = this.#assumed.size === 0 ? undefined : this.#assumed.get(objectKey(from))
    return assumed?.from === from ? assumed.object : from
  }

  assume(object: T, from: T): void {
    this.#assumed.set(objectKey(object), { object, from })
  }

  forget(key: string): void {
    this.#assumed.delete(key)
  }
}
