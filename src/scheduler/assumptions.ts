/** Objects as they will be once what was decided has been written: what others decide meanwhile reckons with it. */
import type { Informer } from '#client/informer.ts'
import { type KubeObject, objectKey } from '#meta/object.ts'

export class Assumptions<T extends KubeObject> {
  readonly #informer: Informer<T>
  /** What is assumed holds as long as nothing newer than what it was made from has been heard. */
  readonly #assumed = new Map<string, { readonly object: T; readonly from: T }>()

  constructor(informer: Informer<T>) {
    this.#informer = informer
  }

  get(key: string): T | undefined {
    const from = this.#informer.get(key)
    return from === undefined ? undefined : this.seen(from)
  }

  /** As it is assumed to be. */
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
