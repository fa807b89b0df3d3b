/**
 * Computes the value of Retry-After for rejected requests, in seconds, for each priority level. The value doubles while
 * many requests are rejected and shrinks by one while few are.
 */
const MAX_SECONDS = 32

interface Second {
  readonly at: number
  readonly dropped: number
}

export class RetryAfter {
  #seconds = 1
  #raisedAt = 0
  /** Past seconds with rejections, oldest first, as far as they still count. */
  #history: Second[] = []
  #current = { at: 0, dropped: 0 }

  /** In seconds. */
  get value(): number {
    return this.#seconds
  }

  /** `nowMs` of the wall clock. */
  dropped(nowMs: number): void {
    const at = Math.floor(nowMs / 1000)
    if (at === this.#current.at) {
      this.#current.dropped++
      return
    }
    const longest = Math.min(2 * this.#seconds, MAX_SECONDS)
    this.#history.push(this.#current)
    this.#history = this.#history.filter((second) => this.#current.at - second.at <= longest)
    this.#current = { at, dropped: 1 }
    this.#adjust(at)
  }

  #adjust(at: number): void {
    const counted = this.#history.filter((second) => at - second.at <= this.#seconds && second.at < at)
    const dropped = counted.reduce((sum, second) => sum + second.dropped, 0)
    if (at - this.#raisedAt >= this.#seconds && dropped >= 3 * this.#seconds) {
      this.#seconds = Math.min(2 * this.#seconds, MAX_SECONDS)
      this.#raisedAt = at
    } else if (dropped < this.#seconds && this.#seconds > 1) this.#seconds--
  }
}
