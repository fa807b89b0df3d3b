/**
 * Runs background operations that outlive a reconcile, one at a time for each name. After a failure the name is blocked
 * with exponential backoff. The times are upstream's.
 */
import { exponentialDelayMs, type Growth } from '#lib/backoff.ts'
import type { Clock } from '#lib/clock.ts'

const RETRY: Growth = { baseMs: 500, capMs: 122_000 }

/** Failed operations with their count and blocked time. */
export class FailureBackoffs {
  readonly #clock: Clock
  readonly #failed = new Map<string, { readonly times: number; readonly untilMs: number }>()

  constructor(clock: Clock) {
    this.#clock = clock
  }

  add(name: string): void {
    const { times = 0 } = this.#failed.get(name) ?? {}
    this.#failed.set(name, { times: times + 1, untilMs: this.#clock.elapsed() + exponentialDelayMs(RETRY, times) })
  }

  /** The remaining blocked time. */
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
  readonly #failures: FailureBackoffs
  readonly #running = new Map<string, Promise<void>>()

  constructor({ clock, onError }: OperationsOptions) {
    this.#onError = onError
    this.#failures = new FailureBackoffs(clock)
  }

  isRunning(name: string): boolean {
    return this.#running.has(name)
  }

  /** Starts the operation, unless it is running or blocked. */
  start(name: string, work: () => Promise<void>): void {
    if (this.#running.has(name) || this.#failures.waitMs(name) > 0) return
    this.#running.set(name, this.#run(name, work))
  }

  /** Like `start`, for short work: resolves when it has ended, even with an error. */
  async finish(name: string, work: () => Promise<void>): Promise<void> {
    this.start(name, work)
    await this.#running.get(name)
  }

  /** Resolves when all operations have ended. */
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
