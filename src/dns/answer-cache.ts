/** Answers of other servers for as long as they are true, no more of them than there is room for. */
import type { Clock } from '#lib/clock.ts'

import type { Kept } from './passed-on.ts'

/** As CoreDNS has by default, and as much memory as goes into it at most. */
const MAX_ENTRIES = 9984
const MAX_BYTES = 16 << 20
/** What one entry takes beside its bytes, roughly. */
const ENTRY_BYTES = 1000

interface Entry {
  readonly kept: Kept
  readonly atMs: number
}

export class AnswerCache {
  readonly #clock: Clock
  /** Those that came first are first. */
  readonly #entries = new Map<string, Entry>()
  #bytes = 0

  constructor(clock: Clock) {
    this.#clock = clock
  }

  get size(): number {
    return this.#entries.size
  }

  /** With how old it is, in seconds. */
  find(key: string): { readonly kept: Kept; readonly age: number } | undefined {
    const entry = this.#entries.get(key)
    if (entry === undefined) return undefined
    const age = Math.floor((this.#clock.elapsed() - entry.atMs) / 1000)
    if (age < entry.kept.seconds) return { kept: entry.kept, age }
    this.#drop(key, entry)
    return undefined
  }

  put(key: string, kept: Kept): void {
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

const sizeOf = ({ message }: Kept): number => message.bytes.length + ENTRY_BYTES
