/** Schedules syncs: soon after a request but at a limited rate, again after a failure, and periodically. */
import type { Clock, Timer } from '#lib/clock.ts'

export interface SyncLoopOptions {
  readonly clock: Clock
  /** Between the end of one sync and the start of the next. */
  readonly minMs: number
  /** After a failure. */
  readonly retryMs: number
  readonly maxMs: number
}

export interface SyncLoop {
  /** A sync starts after this call; several calls share one. */
  request(): void
  /** Starts no more syncs; resolves when the running one has ended. */
  stop(): Promise<void>
}

/** `sync` returns whether it succeeded, and never throws. */
export function startSyncLoop(
  { clock, minMs, retryMs, maxMs }: SyncLoopOptions,
  sync: () => Promise<boolean>,
): SyncLoop {
  let timer: Timer | undefined
  let running: Promise<void> | undefined
  let endedMs = -Infinity
  let isWanted = false
  let isStopped = false
  const run = async (): Promise<void> => {
    isWanted = false
    const hasSucceeded = await sync()
    endedMs = clock.elapsed()
    running = undefined
    plan(isWanted ? minMs : Math.max(minMs, hasSucceeded ? maxMs : Math.min(retryMs, maxMs)))
  }
  const plan = (delayMs: number): void => {
    timer?.cancel()
    if (isStopped) return
    timer = clock.after(
      delayMs,
      () => {
        running = run()
      },
      { background: true },
    )
  }
  plan(maxMs)
  return {
    request() {
      if (isWanted || isStopped) return
      isWanted = true
      if (running === undefined) plan(Math.max(0, endedMs + minMs - clock.elapsed()))
    },
    async stop() {
      isStopped = true
      timer?.cancel()
      await running
    },
  }
}
