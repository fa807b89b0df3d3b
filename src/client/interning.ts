/**
 * Interns equal parts of objects. Pods of one ReplicaSet differ little, as do two versions of an object. Each equal
 * part is stored once, which also makes comparisons fast.
 */
import { controllerOf, type KubeObject } from '#meta/object.ts'

/** Deeper parts are not shared: users control the depth of an object, and recursion must end. */
const MAX_DEPTH = 16

type Fields = Record<string, unknown>

/**
 * Returns `fresh` with every part that equals a part of `previous` replaced by that part, or `previous` itself if both
 * are equal. Changes only `fresh`.
 */
export function shareEqualParts<T>(fresh: T, previous: unknown, depth: number = MAX_DEPTH): T {
  if (fresh === previous) return previous as T
  if (!isObject(fresh) || !isObject(previous) || depth === 0 || Array.isArray(fresh) !== Array.isArray(previous))
    return fresh
  let isEqual = true
  // Not `for … in`: V8 deoptimizes such a loop whenever its body writes to the object.
  const keys = Object.keys(fresh)
  for (const key of keys) {
    const previousPart = Object.hasOwn(previous, key) ? (previous as Fields)[key] : undefined
    const shared = shareEqualParts((fresh as Fields)[key], previousPart, depth - 1)
    ;(fresh as Fields)[key] = shared
    if (shared !== previousPart) isEqual = false
  }
  return isEqual && Object.keys(previous).length === keys.length ? (previous as T) : fresh
}

function isObject(value: unknown): value is object {
  return typeof value === 'object' && value !== null
}

/** The latest object of each owner, as the source of parts for the next one. */
export class InternPool<T extends KubeObject> {
  readonly #latest = new Map<string, T>()

  /** Returns the object to store. `old` is its previous version. */
  intern(fresh: T, old: T | undefined): T {
    const owner = ownerOf(fresh)
    const object = shareEqualParts(fresh, old ?? this.#latest.get(owner) ?? this.#latest.get(''))
    if (old !== undefined) this.forget(old)
    this.#latest.set(owner, object)
    return object
  }

  /** Forgets everything but these objects. */
  reset(objects: readonly T[]): void {
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
