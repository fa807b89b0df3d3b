/**
 * Expectations of a controller, as upstream's. After a create or delete the cache is stale for a moment, and a
 * reconcile would repeat the write. So a key waits until all expected events have arrived, or five minutes have passed.
 */
import type { Clock } from '#lib/clock.ts'
import { type KubeObject, objectKey } from '#meta/object.ts'
import { isNotFound } from '#meta/status.ts'

/** After this time an event was missed, and the cache counts as current. */
const TIMEOUT_MS = 300_000

interface PendingEvents {
  creations: number
  /** Keys of objects with an expected deletion. */
  readonly deletions: Set<string>
  readonly sinceMs: number
}

/** The result of several writes. */
export interface BatchOutcome {
  readonly done: number
  /** The first error; later batches were skipped. */
  readonly error?: unknown
}

export class Expectations {
  readonly #clock: Clock
  readonly #expected = new Map<string, PendingEvents>()

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

  /** Creates `count` objects in batches of 1, 2, 4, …: if the first is refused, the others would be too. */
  async create(key: string, count: number, createOne: () => Promise<unknown>): Promise<BatchOutcome> {
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

  /** Deletes all at once. Ignores NotFound. */
  async delete<T extends KubeObject>(
    key: string,
    objects: readonly T[],
    deleteOne: (object: T) => Promise<unknown>,
  ): Promise<BatchOutcome> {
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

  #begin(key: string): PendingEvents {
    const before = this.#expected.get(key)
    if (before !== undefined && (before.creations > 0 || before.deletions.size > 0)) return before
    const expected: PendingEvents = { creations: 0, deletions: new Set(), sinceMs: this.#clock.elapsed() }
    this.#expected.set(key, expected)
    return expected
  }
}
