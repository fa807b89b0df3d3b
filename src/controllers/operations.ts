/**
 * Operations: work that outlives the look at a key that began it, one at a time by name. One that failed is not begun again
 * for a while, which grows with each failure; whoever looks in the meantime is turned away. The times are upstream's.
 */
import { exponentialDelayMs, type Growth } from '#lib/backoff.ts'
import type { Clock } from '#lib/clock.ts'

const RETRY: Growth = { baseMs: 500, capMs: 122_000 }

/** What has failed, how often in a row, and until when it is left alone. */
export class Failures {
  readonly #clock: Clock
  readonly #failed = new Map<string, { readonly times: number; readonly untilMs: number }>()

  constructor(clock: Clock) {
    this.#clock = clock
  }

  add(name: string): void {
    const { times = 0 } = this.#failed.get(name) ?? {}
    this.#failed.set(name, { times: times + 1, untilMs: this.#clock.elapsed() + exponentialDelayMs(RETRY, times) })
  }

  /** How long it is left alone yet. */
  waitMs(name: string): number {
    return Math.max(0, (this.#failed.get(name)?.untilMs ?? 0) - this.#clock.elapsed())
  }

  forget(name: string): void {
    this.#failed.delete(name)
  }
}

export interface OperationsOptions {
  readonly clock: Clock
  readonly onError: (error: unknown, name: string) => void
}

export class Operations {
  readonly #onError: OperationsOptions['onError']
  readonly #failures: Failures
  readonly #running = new Map<string, Promise<void>>()

  constructor({ clock, onError }: OperationsOptions) {
    this.#onError = onError
    this.#failures = new Failures(clock)
  }

  isRunning(name: string): boolean {
    return this.#running.has(name)
  }

  /** Begins it, unless it is under way or waits after a failure. */
  start(name: string, work: () => Promise<void>): void {
    if (this.#running.has(name) || this.#failures.waitMs(name) > 0) return
    this.#running.set(name, this.#run(name, work))
  }

  /** The same, for what does not take long: resolves when it has ended, for good or ill. */
  async finish(name: string, work: () => Promise<void>): Promise<void> {
    this.start(name, work)
    await this.#running.get(name)
  }

  /** Resolves when all that were begun have ended. */
  async settled(): Promise<void> {
    while (this.#running.size > 0) await Promise.all(this.#running.values())
  }

  async #run(name: string, work: () => Promise<void>): Promise<void> {
    try {
      await work()
      this.#failures.forget(name)
    } catch (error) {
      this.#failures.add(name)
      this.#onError(error, name)
    } finally {
      this.#running.delete(name)
    }
  }
}
