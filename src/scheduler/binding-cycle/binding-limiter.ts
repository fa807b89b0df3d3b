/**
 * Limits concurrent bindings to as many as keep the API server busy. A waiting pod can be overtaken by one of higher
 * priority. Less important requests, such as events, wait until no binding has run for a moment.
 */
import type { Clock, Timer } from '#lib/clock.ts'

/** At 20 ms each these are three thousand a second, more than any API server handles. */
const MAX_BINDINGS = 64
/** The pause after the last binding before the limiter is idle. */
const IDLE_AFTER_MS = 100

export class BindingLimiter {
  readonly #clock: Clock
  #bindings = 0
  #capacity: PromiseWithResolvers<void> | undefined
  /** From the first binding until CALM_MS after the last one. */
  #busy: PromiseWithResolvers<void> | undefined
  #timer: Timer | undefined

  constructor(clock: Clock) {
    this.#clock = clock
  }

  /** Resolves when another binding may start; undefined if one may now. */
  capacity(): Promise<void> | undefined {
    if (this.#bindings < MAX_BINDINGS) return undefined
    return (this.#capacity ??= Promise.withResolvers()).promise
  }

  /** Resolves when no binding is running; undefined if none is. */
  idle(): Promise<void> | undefined {
    return this.#busy?.promise
  }

  async run<T>(bind: () => Promise<T>): Promise<T> {
    this.#bindings++
    this.#busy ??= Promise.withResolvers()
    this.#timer?.cancel()
    try {
      return await bind()
    } finally {
      this.#bindings--
      this.#capacity?.resolve()
      this.#capacity = undefined
      if (this.#bindings === 0) this.#timer = this.#clock.after(IDLE_AFTER_MS, () => this.#becomeIdle())
    }
  }

  #becomeIdle(): void {
    this.#busy?.resolve()
    this.#busy = undefined
  }
}
