/** Measures the demand of a priority level over time: the seats that requests occupy or wait for. */

/**
 * The part of the earlier value that remains after each period: half of it decays in five minutes of ten-second
 * periods.
 */
const SMOOTHING = 0.977

/** Over one period, and smoothed over all of them. */
export interface DemandStats {
  readonly highWatermark: number
  readonly average: number
  readonly deviation: number
  readonly smoothed: number
}

export class SeatDemand {
  #seats = 0
  #sinceMs: number
  /** Integrals over the current period. */
  #elapsedMs = 0
  #sum = 0
  #sumOfSquares = 0
  #high = 0
  stats: DemandStats = { highWatermark: 0, average: 0, deviation: 0, smoothed: 0 }

  constructor(nowMs: number) {
    this.#sinceMs = nowMs
  }

  set(seats: number, nowMs: number): void {
    this.#advance(nowMs)
    this.#seats = seats
    if (seats > this.#high) this.#high = seats
  }

  /** Ends the period and starts the next one. A period without length has only a peak. */
  endPeriod(nowMs: number): void {
    this.#advance(nowMs)
    this.stats = { ...this.stats, highWatermark: this.#high }
    if (this.#elapsedMs > 0) {
      const average = this.#sum / this.#elapsedMs
      const deviation = Math.sqrt(Math.max(0, this.#sumOfSquares / this.#elapsedMs - average * average))
      const envelope = average + deviation
      const smoothed = Math.max(envelope, SMOOTHING * this.stats.smoothed + (1 - SMOOTHING) * envelope)
      this.stats = { highWatermark: this.#high, average, deviation, smoothed }
    }
    this.#elapsedMs = this.#sum = this.#sumOfSquares = 0
    this.#high = this.#seats
  }

  #advance(nowMs: number): void {
    const spanMs = nowMs - this.#sinceMs
    this.#sinceMs = nowMs
    this.#elapsedMs += spanMs
    this.#sum += spanMs * this.#seats
    this.#sumOfSquares += spanMs * this.#seats * this.#seats
  }
}
