/** Caches the answers of upstream DNS servers by TTL, with a limit of entries and bytes. */
import type { Clock } from '#lib/clock.ts'

import type { CachedAnswer } from './forwarded-answer.ts'

/** CoreDNS' default number of entries, and our limit in bytes. */
const MAX_ENTRIES = 9984
const MAX_BYTES = 16 << 20
/** The approximate overhead of an entry. */
const ENTRY_BYTES = 1000

interface Entry {
  readonly kept: CachedAnswer
  readonly atMs: number
}

export class AnswerCache {
  readonly #clock: Clock
  /** In insertion order. */
  readonly #entries = new Map<string, Entry>()
  #bytes = 0

  constructor(clock: Clock) {
    this.#clock = clock
  }

  get size(): number {
    return this.#entries.size
  }

  /** Returns the entry with its age in seconds. */
  find(key: string): { readonly kept: CachedAnswer; readonly age: number } | undefined {
    const entry = this.#entries.get(key)
    if (entry === undefined) return undefined
    const age = Math.floor((this.#clock.elapsed() - entry.atMs) / 1000)
    if (age < entry.kept.seconds) return { kept: entry.kept, age }
    this.#drop(key, entry)
    return undefined
  }

  put(key: string, kept: CachedAnswer): void {
    if (kept.seconds <= 0) return
    const before = this.#entries.get(key)
    if (before !== undefined) this.#drop(key, before)
    this.#entries.set(key, { kept, atMs: this.#clock.elapsed() })
    this.#bytes += sizeOf(kept)
    for (const [oldest, entry] of this.#entries) {
      if (this.#entries.size <= MAX_ENTRIES && this.#bytes <= MAX_BYTES) return
      this.#drop(oldest, entry)
    }
  }

  #drop(key: string, { kept }: Entry): void {
    this.#entries.delete(key)
    this.#bytes -= sizeOf(kept)
  }
}

const sizeOf = ({ message }: CachedAnswer): number => message.bytes.length + ENTRY_BYTES
