/** What a node is short of, over time: how long something has been too little, and what is still told of it. Pure but for its memory. */
import { isMet, type Observations, SIGNALS, type Threshold } from './thresholds.ts'

export class Pressure {
  readonly #thresholds: readonly Threshold[]
  /** A condition is told for so long after it was last seen. */
  readonly #transitionMs: number
  readonly #since = new Map<Threshold, number>()
  #acted: readonly Threshold[] = []
  readonly #seenMs = new Map<string, number>()
  /** `MemoryPressure` and so on. */
  conditions: readonly string[] = []

  constructor(thresholds: readonly Threshold[], transitionMs: number) {
    this.#thresholds = thresholds
    this.#transitionMs = transitionMs
  }

  /** What is to be acted on: memory first. */
  observe(seen: Observations, nowMs: number): readonly Threshold[] {
    // What was acted on is so until what is to be reclaimed has been.
    const met = this.#thresholds.filter(
      (threshold) => isMet(threshold, seen, false) || (this.#acted.includes(threshold) && isMet(threshold, seen, true)),
    )
    for (const threshold of this.#thresholds) if (!met.includes(threshold)) this.#since.delete(threshold)
    for (const threshold of met) {
      if (!this.#since.has(threshold)) this.#since.set(threshold, nowMs)
      this.#seenMs.set(SIGNALS[threshold.signal].condition, nowMs)
    }
    for (const [condition, atMs] of this.#seenMs) {
      if (nowMs - atMs >= this.#transitionMs) this.#seenMs.delete(condition)
    }
    this.conditions = ['MemoryPressure', 'DiskPressure', 'PIDPressure'].filter((type) => this.#seenMs.has(type))
    this.#acted = met.filter((threshold) => nowMs - (this.#since.get(threshold) ?? nowMs) >= threshold.graceMs)
    return this.#acted.toSorted((a, b) => Number(isMemory(b)) - Number(isMemory(a)))
  }

  /** Whether all is well, with what is to be there in addition. */
  isRelieved(seen: Observations): boolean {
    return !this.#thresholds.some((threshold) => isMet(threshold, seen, true))
  }
}

const isMemory = ({ signal }: Threshold): boolean => signal === 'memory.available'
