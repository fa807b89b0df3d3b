/**
 * Expiring cache: a bounded number of values, each for a limited time. When it is full, what was set longest ago goes:
 * values are short-lived here, so that is nearly what was used longest ago, without moving anything on a read.
 */
import type { Clock } from '#lib/clock.ts'

interface Kept<V> {
  readonly value: V
  readonly expiresAtMs: number
}

export class ExpiringCache<V> {
  readonly #clock: Clock
  readonly #limit: number
  /** In the order in which they were set. */
  readonly #kept = new Map<string, Kept<V>>()

  constructor(clock: Clock, limit: number) {
    this.#clock = clock
    this.#limit = limit
  }

  get size(): number {
    return this.#kept.size
  }

  get(key: string): V | undefined {
    const found = this.#kept.get(key)
    if (found === undefined) return undefined
    if (this.#clock.elapsed() < found.expiresAtMs) return found.value
    this.#kept.delete(key)
    return undefined
  }

  set(key: string, value: V, ttlMs: number): void {
    if (ttlMs <= 0) return
    this.#kept.delete(key)
    if (this.#kept.size >= this.#limit) this.#makeRoom()
    this.#kept.set(key, { value, expiresAtMs: this.#clock.elapsed() + ttlMs })
  }

  delete(key: string): void {
    this.#kept.delete(key)
  }

  #makeRoom(): void {
    const [oldest] = this.#kept.keys()
    if (oldest !== undefined) this.#kept.delete(oldest)
  }
}
