/** The process of a private containerd: kept alive with growing delays between its lives, in a process group of its own. */
import { type ChildProcess, spawn } from 'node:child_process'
import { open, readFile, rename, stat } from 'node:fs/promises'

import { type Backoff, createBackoff } from '#lib/backoff.ts'
import { type Clock, sleep } from '#lib/clock.ts'
import type { Logger } from '#lib/log.ts'
import type { Random } from '#lib/random.ts'

import type { Places } from './places.ts'
import { containerdIn, endProcesses, idleShimsIn, processes } from './process-table.ts'
import type { Programs } from './programs.ts'

export interface ProcessOptions {
  readonly places: Places
  readonly programs: Pick<Programs, 'containerd' | 'path'>
  readonly clock: Clock
  readonly random: Random
  readonly log: Logger
}

const BACKOFF = { baseMs: 100, capMs: 10_000, jitter: 0.1 }
/** One that lived so long died of something else than the one before. */
const SETTLED_MS = 60_000
const STOP_MS = 15_000
/** The log of the last lives; an older one is kept beside it. */
const LOG_BYTES = 8 << 20

export interface KeptProcess {
  /** How often it has ended without being asked to. */
  readonly deaths: number
  /** The last lines it wrote. */
  lastWords(): Promise<string>
}

/**
 * Ends with `closing`; containers go on without it, because each has a process that looks after it. So does one that outlived
 * us when we were killed: it is ended first, as only a child can be watched.
 */
export async function keepContainerd(options: ProcessOptions, closing: AsyncDisposableStack): Promise<KeptProcess> {
  const { places, clock, random, log } = options
  await endProcesses(containerdIn(await processes(), places), clock, STOP_MS)
  const stopped = new AbortController()
  const backoff = createBackoff(random, BACKOFF)
  const kept = { deaths: 0, lastWords: () => lastWords(places.logFile) }
  let child = await start(options)
  const living = (async () => {
    for (;;) {
      const startedMs = clock.elapsed()
      const end = await child.ended
      if (stopped.signal.aborted) return
      kept.deaths++
      const delay = nextDelay(backoff, clock.elapsed() - startedMs)
      log.error(undefined, 'containerd has ended and is started again', { end, delayMs: Math.round(delay) })
      await sleep(clock, delay, stopped.signal)
      child = await start(options)
      void endForgotten(options, stopped.signal)
    }
  })().catch((error: unknown) => {
    if (!stopped.signal.aborted) log.error(error, 'containerd cannot be started')
  })
  closing.defer(async () => {
    stopped.abort()
    child.process.kill('SIGTERM')
    const late = clock.after(STOP_MS, () => child.process.kill('SIGKILL'))
    await child.ended
    late.cancel()
    await living
  })
  return kept
}

/** Whoever looks after nothing for so long was forgotten. */
const IDLE_MS = 15_000

async function endForgotten({ places, clock, log }: ProcessOptions, signal: AbortSignal): Promise<void> {
  const idle = async (): Promise<number[]> => idleShimsIn(await processes(), places)
  const pause = (): Promise<void> => sleep(clock, IDLE_MS, signal, { background: true })
  try {
    await pause()
    const before = new Set(await idle())
    await pause()
    const forgotten = (await idle()).filter((pid) => before.has(pid))
    if (forgotten.length === 0) return
    log.info('Processes that look after no container are ended', { pids: forgotten })
    await endProcesses(forgotten, clock, 0)
  } catch (error) {
    if (!signal.aborted) log.error(error, 'Processes that look after no container could not be ended')
  }
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

async function start({ places, programs }: ProcessOptions): Promise<Child> {
  const { size } = await stat(places.logFile).catch(() => ({ size: 0 }))
  if (size > LOG_BYTES) await rename(places.logFile, `${places.logFile}.1`)
  await using log = await open(places.logFile, 'a', 0o600)
  const child = spawn(programs.containerd, ['--config', places.configFile], {
    // Ctrl-C in a terminal is meant for us; we end it in our own order.
    detached: true,
    stdio: ['ignore', log.fd, log.fd],
    cwd: '/',
    env: { PATH: programs.path },
  })
  const ended = new Promise<string>((resolve) => {
    child.on('error', (error) => resolve(error.message))
    child.on('exit', (code, signal) => resolve(signal ?? `exit code ${code}`))
  })
  return { process: child, ended }
}

const LAST_LINES = 8

async function lastWords(file: string): Promise<string> {
  const text = await readFile(file, 'utf8').catch(() => '')
  return text.trim().split('\n').slice(-LAST_LINES).join('\n')
}
