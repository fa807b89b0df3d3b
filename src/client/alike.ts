/**
 * Objects of a kind are much alike: pods of one set differ in a name, an object in its next version in a line. What is equal
 * is held once, text as well as whole parts, which makes comparing them quick besides.
 */
import { controllerOf, type KubeObject } from '#meta/object.ts'

/** What is deeper stays as it is: users decide how deep an object is. */
const MAX_DEPTH = 16

type Fields = Record<string, unknown>

/** `fresh` with every part that `known` has as well taken from there; `known` itself when they are equal. Only `fresh` is changed. */
export function sharing<T>(fresh: T, known: unknown, depth: number = MAX_DEPTH): T {
  if (fresh === known) return known as T
  if (!isObject(fresh) || !isObject(known) || depth === 0 || Array.isArray(fresh) !== Array.isArray(known)) return fresh
  let isEqual = true
  // Not `for … in`: what is written into the object makes the engine give up its code for the loop, each time anew.
  const keys = Object.keys(fresh)
  for (const key of keys) {
    const theirs = Object.hasOwn(known, key) ? (known as Fields)[key] : undefined
    const kept = sharing((fresh as Fields)[key], theirs, depth - 1)
    ;(fresh as Fields)[key] = kept
    if (kept !== theirs) isEqual = false
  }
  return isEqual && Object.keys(known).length === keys.length ? (known as T) : fresh
}

function isObject(value: unknown): value is object {
  return typeof value === 'object' && value !== null
}

/** Remembers one object of each owner, the one seen last, for the next to share with. */
export class Siblings<T extends KubeObject> {
  readonly #latest = new Map<string, T>()

  /** The object to hold from now on; `old`: what it was until now. */
  take(fresh: T, old: T | undefined): T {
    const owner = ownerOf(fresh)
    const object = sharing(fresh, old ?? this.#latest.get(owner) ?? this.#latest.get(''))
    if (old !== undefined) this.forget(old)
    this.#latest.set(owner, object)
    return object
  }

  /** From now on these are all there are. */
  restart(objects: readonly T[]): void {
    this.#latest.clear()
    for (const object of objects) this.#latest.set(ownerOf(object), object)
  }

  forget(object: T): void {
    const owner = ownerOf(object)
    if (this.#latest.get(owner) === object) this.#latest.delete(owner)
  }
}

function ownerOf(object: KubeObject): string {
  return controllerOf(object)?.uid ?? ''
}
