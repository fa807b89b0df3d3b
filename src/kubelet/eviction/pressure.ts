/** Tracks how long eviction thresholds are met and which node conditions follow. Pure except for its memory. */
import { isMet, type Observations, SIGNALS, type Threshold } from './thresholds.ts'

export class Pressure {
  readonly #thresholds: readonly Threshold[]
  /** Time for which a condition stays after it was last observed. */
  readonly #transitionMs: number
  readonly #since = new Map<Threshold, number>()
  #acted: readonly Threshold[] = []
  readonly #seenMs = new Map<string, number>()
  /** Node conditions such as `MemoryPressure`. */
  conditions: readonly string[] = []

  constructor(thresholds: readonly Threshold[], transitionMs: number) {
    this.#thresholds = thresholds
    this.#transitionMs = transitionMs
  }

  /** The thresholds to act on, memory first. */
  observe(seen: Observations, nowMs: number): readonly Threshold[] {
    // An active threshold stays active until its minimum reclaim is reached.
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

  /** True if no threshold is met, including the minimum reclaim. */
  isRelieved(seen: Observations): boolean {
    return !this.#thresholds.some((threshold) => isMet(threshold, seen, true))
  }
}

const isMemory = ({ signal }: Threshold): boolean => signal === 'memory.available'
