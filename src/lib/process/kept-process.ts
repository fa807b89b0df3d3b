/** Runs a child process and restarts it with backoff until it is stopped. */
import type { ChildProcess } from 'node:child_process'

import { type Backoff, createBackoff } from '../backoff.ts'
import { type Clock, sleep } from '../clock.ts'
import type { Logger } from '../log/log.ts'
import type { Random } from '../random.ts'

export interface KeepOptions {
  /** Its name in the log. */
  readonly name: string
  readonly spawn: () => Promise<ChildProcess>
  /** Called after each restart; the signal is aborted when the process is no longer wanted. */
  readonly restarted?: (signal: AbortSignal) => void
  /** For SIGTERM; then it is killed. */
  readonly stopMs: number
  readonly clock: Clock
  readonly random: Random
  readonly log: Logger
}

export interface Kept {
  /** The number of unexpected ends. */
  readonly deaths: number
}

const BACKOFF = { baseMs: 100, capMs: 10_000, jitter: 0.1 }
/** One that lived so long died of something else than the one before. */
const SETTLED_MS = 60_000

/** Resolves when it was started. Ends with `closing`. */
export async function keepProcess(options: KeepOptions, closing: AsyncDisposableStack): Promise<Kept> {
  const { name, clock, random, log, stopMs } = options
  const stopped = new AbortController()
  const backoff = createBackoff(random, BACKOFF)
  const kept = { deaths: 0 }
  let child = await start(options)
  const living = (async () => {
    for (;;) {
      const startedMs = clock.elapsed()
      const end = await child.ended
      if (stopped.signal.aborted) return
      kept.deaths++
      const delay = nextDelay(backoff, clock.elapsed() - startedMs)
      log.error(undefined, `${name} exited; restarting`, { end, delayMs: Math.round(delay) })
      await sleep(clock, delay, stopped.signal)
      child = await start(options)
      options.restarted?.(stopped.signal)
    }
  })().catch((error: unknown) => {
    if (!stopped.signal.aborted) log.error(error, `Failed to start ${name}`)
  })
  closing.defer(async () => {
    stopped.abort()
    child.process.kill('SIGTERM')
    const late = clock.after(stopMs, () => child.process.kill('SIGKILL'))
    await child.ended
    late.cancel()
    await living
  })
  return kept
}

function nextDelay(backoff: Backoff, livedMs: number): number {
  if (livedMs > SETTLED_MS) backoff.reset()
  return backoff.next()
}

interface Child {
  readonly process: ChildProcess
  /** How it ended, in words. */
  readonly ended: Promise<string>
}

async function start({ spawn }: KeepOptions): Promise<Child> {
  const child = await spawn()
  const ended = new Promise<string>((resolve) => {
    child.on('error', (error) => resolve(error.message))
    child.on('exit', (code, signal) => resolve(signal ?? `exit code ${code}`))
  })
  return { process: child, ended }
}
