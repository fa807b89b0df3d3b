/**
 * Expectations: after a controller has created or deleted something, its cache does not show it for a moment, and acting
 * on it would do the same again. Until everything expected was seen, or five minutes have passed, the key is left alone.
 */
import type { Clock } from '#lib/clock.ts'
import { type KubeObject, objectKey } from '#meta/object.ts'
import { isNotFound } from '#meta/status.ts'

/** Something was missed, and the cache is the truth by now. */
const TIMEOUT_MS = 300_000

interface Expected {
  creations: number
  /** Keys of objects whose deletion has not been seen. */
  readonly deletions: Set<string>
  readonly sinceMs: number
}

/** What became of several writes. */
export interface Outcome {
  readonly done: number
  /** The first failure; what had not begun by then was left out. */
  readonly error?: unknown
}

export class Expectations {
  readonly #clock: Clock
  readonly #expected = new Map<string, Expected>()

  constructor(clock: Clock) {
    this.#clock = clock
  }

  satisfied(key: string): boolean {
    const expected = this.#expected.get(key)
    if (expected === undefined || (expected.creations <= 0 && expected.deletions.size === 0)) return true
    return this.#clock.elapsed() - expected.sinceMs > TIMEOUT_MS
  }

  forget(key: string): void {
    this.#expected.delete(key)
  }

  sawCreation(key: string): void {
    const expected = this.#expected.get(key)
    if (expected !== undefined) expected.creations--
  }

  sawDeletion(key: string, object: KubeObject): void {
    this.#expected.get(key)?.deletions.delete(objectKey(object))
  }

  /**
   * Creates `count` things, 1, then 2, then 4, …, each batch at once: where the first is refused, so are the others, and
   * nobody is bothered with all of them.
   */
  async create(key: string, count: number, createOne: () => Promise<unknown>): Promise<Outcome> {
    const expected = this.#begin(key)
    expected.creations += count
    let done = 0
    for (let batch = 1; done < count; batch *= 2) {
      const size = Math.min(batch, count - done)
      const results = await Promise.allSettled(Array.from({ length: size }, createOne))
      const failed = results.filter((result) => result.status === 'rejected')
      done += size - failed.length
      if (failed.length === 0) continue
      expected.creations -= count - done
      return { done, error: failed[0]?.reason }
    }
    return { done }
  }

  /** Deletes all of them at once. What has gone already is fine. */
  async delete<T extends KubeObject>(
    key: string,
    objects: readonly T[],
    deleteOne: (object: T) => Promise<unknown>,
  ): Promise<Outcome> {
    const expected = this.#begin(key)
    for (const object of objects) expected.deletions.add(objectKey(object))
    let [done, error]: [number, unknown] = [0, undefined]
    const one = async (object: T): Promise<void> => {
      try {
        await deleteOne(object)
        done++
      } catch (cause) {
        expected.deletions.delete(objectKey(object))
        if (!isNotFound(cause)) error ??= cause
      }
    }
    await Promise.all(objects.map(one))
    return error === undefined ? { done } : { done, error }
  }

  #begin(key: string): Expected {
    const before = this.#expected.get(key)
    if (before !== undefined && (before.creations > 0 || before.deletions.size > 0)) return before
    const expected: Expected = { creations: 0, deletions: new Set(), sinceMs: this.#clock.elapsed() }
    this.#expected.set(key, expected)
    return expected
  }
}
