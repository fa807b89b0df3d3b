/** Work that is done again and again, never twice at once, until it is stopped. */
import { type Clock, every, sleep } from './clock.ts'

export interface Rounds {
  /**
   * No round begins any more. Resolves when the one that is running has ended, or soon after: who does not answer by then
   * is not waited for, and nobody hears of it. Harmless when repeated.
   */
  stop(): Promise<void>
}

export interface RoundsOptions {
  readonly clock: Clock
  readonly periodMs: number
  /** What a round failed of; the next one comes all the same. */
  readonly onError: (error: unknown) => void
}

/** What answers at all has answered by then; a store that is down must not keep a program from ending. */
const STOP_MS = 1000

/** The first round begins one period from now. A round that lasts longer than a period is waited for. */
export function startRounds({ clock, periodMs, onError }: RoundsOptions, round: () => Promise<void>): Rounds {
  let running: Promise<void> | undefined
  let isStopped = false
  const run = async (): Promise<void> => {
    try {
      await round()
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
