/**
 * Bounds the memory of all cached encodings of entries, pages and changes. Beyond the limit it evicts the least
 * recently used encoding, and it evicts unused encodings after a while.
 */

/** The memo of an entry, a page or a change. */
export type Memo = Map<string, unknown>

interface Kept {
  readonly memo: Memo
  readonly name: string
  readonly value: unknown
  readonly bytes: number
  /** The time of the last use. */
  round: number
}

/** The approximate overhead per value. */
const OVERHEAD_BYTES = 200
/** Half a megabyte of questions at most. */
const MAX_QUESTIONS = 1000
const MAX_QUESTION_LENGTH = 500

export class ByteMemo {
  readonly #limitBytes: number
  /** Least recently used first. Values that a memo has dropped by itself stay until their eviction. */
  readonly #kept = new Set<Kept>()
  #bytes = 0
  #round = 0
  /** Recent questions, oldest first. */
  readonly #recent = new Set<string>()

  constructor(limitBytes: number) {
    this.#limitBytes = limitBytes
  }

  get bytes(): number {
    return this.#bytes
  }

  /** True if the same question came recently: the answer to a single question is not worth caching. */
  isRepeated(question: string): boolean {
    if (question.length > MAX_QUESTION_LENGTH) return false
    const isRepeated = this.#recent.delete(question)
    this.#recent.add(question)
    if (this.#recent.size > MAX_QUESTIONS) this.#recent.delete(this.#recent.values().next().value ?? question)
    return isRepeated
  }

  // The name determines the type: readers of a name get what was stored under it.
  // oxlint-disable-next-line typescript/no-unnecessary-type-parameters
  get<T>(memo: Memo, name: string): T | undefined {
    const kept = memo.get(name) as Kept | undefined
    if (kept === undefined) return undefined
    this.#kept.delete(kept)
    this.#kept.add(kept)
    kept.round = this.#round
    return kept.value as T
  }

  keep<T>(memo: Memo, name: string, { value, bytes }: { readonly value: T; readonly bytes: number }): T {
    const kept: Kept = { memo, name, value, bytes: bytes + OVERHEAD_BYTES, round: this.#round }
    memo.set(name, kept)
    this.#kept.add(kept)
    this.#bytes += kept.bytes
    for (const oldest of this.#kept) {
      if (this.#bytes <= this.#limitBytes) break
      this.#forget(oldest)
    }
    return value
  }

  /** Evicts values that were not used since the last call. */
  age(): void {
    for (const oldest of this.#kept) {
      if (oldest.round === this.#round) break
      this.#forget(oldest)
    }
    this.#round++
  }

  #forget(kept: Kept): void {
    this.#kept.delete(kept)
    this.#bytes -= kept.bytes
    if (kept.memo.get(kept.name) === kept) kept.memo.delete(kept.name)
  }
}
