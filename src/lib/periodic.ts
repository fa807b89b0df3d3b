/** Runs a task periodically, without overlapping runs, until it is stopped. */
import { type Clock, every, sleep } from './clock.ts'

export interface PeriodicTask {
  /**
   * Starts no further run. Resolves when the current run has ended, at the latest after a second; errors of a later end
   * are dropped. Idempotent.
   */
  stop(): Promise<void>
}

export interface PeriodicOptions {
  readonly clock: Clock
  readonly periodMs: number
  /** Receives the error of a failed run; the next run starts on schedule all the same. */
  readonly onError: (error: unknown) => void
}

/** Bounds the wait in `stop`, so that an unreachable store cannot keep a program from exiting. */
const STOP_MS = 1000

/** The first run starts after one period. A tick during a run is skipped. */
export function runPeriodically(
  { clock, periodMs, onError }: PeriodicOptions,
  task: () => Promise<void>,
): PeriodicTask {
  let running: Promise<void> | undefined
  let isStopped = false
  const run = async (): Promise<void> => {
    try {
      await task()
    } catch (error) {
      if (!isStopped) onError(error)
    } finally {
      running = undefined
    }
  }
  const timer = every(clock, periodMs, () => {
    running ??= run()
  })
  return {
    async stop() {
      timer.cancel()
      const limit = new AbortController()
      const late = sleep(clock, STOP_MS, limit.signal).catch(() => undefined)
      await Promise.race([running, late])
      limit.abort()
      isStopped = true
    },
  }
}
