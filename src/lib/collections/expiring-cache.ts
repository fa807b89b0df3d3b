/** A bounded cache of values that expire. A full cache evicts the value that was set first. */
import type { Clock } from '../clock.ts'

interface Entry<V> {
  readonly value: V
  readonly expiresAtMs: number
}

export class ExpiringCache<V> {
  readonly #clock: Clock
  readonly #limit: number
  /** In the order in which they were set. */
  readonly #entries = new Map<string, Entry<V>>()
  readonly #pending = new Map<string, Promise<V>>()

  constructor(clock: Clock, limit: number) {
    this.#clock = clock
    this.#limit = limit
  }

  get size(): number {
    return this.#entries.size
  }

  get(key: string): V | undefined {
    const entry = this.#entries.get(key)
    if (entry === undefined) return undefined
    if (this.#clock.elapsed() < entry.expiresAtMs) return entry.value
    this.#entries.delete(key)
    return undefined
  }

  /** Fetches a missing value. Callers that want the same key meanwhile share one fetch. A failed fetch leaves nothing. */
  async getOrFetch(key: string, fetch: () => Promise<V>, ttlMs: (value: V) => number): Promise<V> {
    const found = this.get(key)
    if (found !== undefined) return found
    let pending = this.#pending.get(key)
    if (pending === undefined) {
      pending = this.#fetch(key, fetch, ttlMs).finally(() => this.#pending.delete(key))
      this.#pending.set(key, pending)
    }
    return pending
  }

  async #fetch(key: string, fetch: () => Promise<V>, ttlMs: (value: V) => number): Promise<V> {
    const value = await fetch()
    this.set(key, value, ttlMs(value))
    return value
  }

  set(key: string, value: V, ttlMs: number): void {
    if (ttlMs <= 0) return
    this.#entries.delete(key)
    if (this.#entries.size >= this.#limit) this.#deleteOldest()
    this.#entries.set(key, { value, expiresAtMs: this.#clock.elapsed() + ttlMs })
  }

  delete(key: string): void {
    this.#entries.delete(key)
  }

  #deleteOldest(): void {
    const [oldest] = this.#entries.keys()
    if (oldest !== undefined) this.#entries.delete(oldest)
  }
}
