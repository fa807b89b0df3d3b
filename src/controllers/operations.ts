/**
 * Operations: work that outlives the look at a key that began it, one at a time by name. One that failed is not begun again
 * for a while, which grows with each failure; whoever looks in the meantime is turned away. The times are upstream's.
 */
import { exponentialDelayMs, type Growth } from '#lib/backoff.ts'
import type { Clock } from '#lib/clock.ts'

const RETRY: Growth = { baseMs: 500, capMs: 122_000 }

export interface OperationsOptions {
  readonly clock: Clock
  readonly onError: (error: unknown, name: string) => void
}

export class Operations {
  readonly #options: OperationsOptions
  readonly #running = new Map<string, Promise<void>>()
  readonly #failed = new Map<string, { readonly times: number; readonly untilMs: number }>()

  constructor(options: OperationsOptions) {
    this.#options = options
  }

  isRunning(name: string): boolean {
    return this.#running.has(name)
  }

  /** Whether it was begun: it is neither under way nor waiting after a failure. */
  start(name: string, work: () => Promise<void>): boolean {
    if (this.#running.has(name) || this.waitMs(name) > 0) return false
    this.#running.set(name, this.#run(name, work))
    return true
  }

  /** How long it has to wait after its last failure. */
  waitMs(name: string): number {
    return Math.max(0, (this.#failed.get(name)?.untilMs ?? 0) - this.#options.clock.elapsed())
  }

  /** Its failures do not count any more. */
  forget(name: string): void {
    this.#failed.delete(name)
  }

  /** Resolves when all that were begun have ended. */
  async settled(): Promise<void> {
    while (this.#running.size > 0) await Promise.all(this.#running.values())
  }

  async #run(name: string, work: () => Promise<void>): Promise<void> {
    const { clock, onError } = this.#options
    try {
      await work()
      this.#failed.delete(name)
    } catch (error) {
      const { times = 0 } = this.#failed.get(name) ?? {}
      this.#failed.set(name, { times: times + 1, untilMs: clock.elapsed() + exponentialDelayMs(RETRY, times) })
      onError(error, name)
    } finally {
      this.#running.delete(name)
    }
  }
}
