/**
 * What is made of entries, pages and changes (their bytes in some form) is remembered with the thing itself and so never
 * outlives a change of it. This bounds all of it together: beyond the limit, what was used longest ago is forgotten and
 * made again when asked for; and so is what nobody has used for a while, as a server at rest needs none of it.
 */

/** The memo of an entry, a page or a change. */
export type Memo = Map<string, unknown>

interface Kept {
  readonly memo: Memo
  readonly name: string
  readonly value: unknown
  readonly bytes: number
  /** When it was used last. */
  round: number
}

/** What keeping anything costs besides its bytes, about. */
const OVERHEAD_BYTES = 200
/** Half a megabyte of questions at most. */
const MAX_QUESTIONS = 1000
const MAX_QUESTION_LENGTH = 500

export class ByteMemo {
  readonly #limitBytes: number
  /** Used longest ago first. What a memo has dropped by itself stays until its turn comes. */
  readonly #kept = new Set<Kept>()
  #bytes = 0
  #round = 0
  /** Questions asked lately, the oldest first. */
  readonly #asked = new Set<string>()

  constructor(limitBytes: number) {
    this.#limitBytes = limitBytes
  }

  get bytes(): number {
    return this.#bytes
  }

  /** Whether the same question came before, not long ago: the answer to one that comes once is not worth keeping. */
  isRepeated(question: string): boolean {
    if (question.length > MAX_QUESTION_LENGTH) return false
    const isRepeated = this.#asked.delete(question)
    this.#asked.add(question)
    if (this.#asked.size > MAX_QUESTIONS) this.#asked.delete(this.#asked.values().next().value ?? question)
    return isRepeated
  }

  // The name says what it is: who keeps something under it gets the same back.
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

  /** Forgets what was not used since this was called before. */
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
