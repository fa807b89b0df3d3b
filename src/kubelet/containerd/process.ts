/** The process of a private containerd: kept alive, in a process group of its own. */
import { type ChildProcess, spawn } from 'node:child_process'
import { open, readFile, rename, stat } from 'node:fs/promises'

import { type Clock, sleep } from '#lib/clock.ts'
import { keepProcess } from '#lib/kept-process.ts'
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
  /** Put before the program, to lead into the network of its pods where that is not ours: `nsenter --net=…`. */
  readonly within?: readonly string[]
}

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
  const { places, clock } = options
  await endProcesses(containerdIn(await processes(), places), clock, STOP_MS)
  const kept = await keepProcess(
    {
      ...options,
      name: 'containerd',
      spawn: () => start(options),
      restarted: (signal) => void endForgotten(options, signal),
      stopMs: STOP_MS,
    },
    closing,
  )
  return {
    get deaths() {
      return kept.deaths
    },
    lastWords: () => lastWords(places.logFile),
  }
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

async function start({ places, programs, within = [] }: ProcessOptions): Promise<ChildProcess> {
  const { size } = await stat(places.logFile).catch(() => ({ size: 0 }))
  if (size > LOG_BYTES) await rename(places.logFile, `${places.logFile}.1`)
  await using log = await open(places.logFile, 'a', 0o600)
  const [program, ...args] = [...within, programs.containerd, '--config', places.configFile]
  return spawn(program, args, {
    // Ctrl-C in a terminal is meant for us; we end it in our own order.
    detached: true,
    stdio: ['ignore', log.fd, log.fd],
    cwd: '/',
    env: { PATH: programs.path },
  })
}

const LAST_LINES = 8

async function lastWords(file: string): Promise<string> {
  const text = await readFile(file, 'utf8').catch(() => '')
  return text.trim().split('\n').slice(-LAST_LINES).join('\n')
}
