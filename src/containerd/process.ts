/** Runs the process of a private containerd in a separate process group, and restarts it when it ends. */
import { type ChildProcess, spawn } from 'node:child_process'
import { open, readFile, rename, stat } from 'node:fs/promises'

import { type Clock, sleep } from '#lib/clock.ts'
import type { Logger } from '#lib/log/log.ts'
import { keepProcess } from '#lib/process/kept-process.ts'
import type { Random } from '#lib/random.ts'

import type { ContainerdPaths } from './paths.ts'
import { containerdIn, endProcesses, idleShimsIn, processes } from './process-table.ts'
import type { Programs } from './programs.ts'

export interface ProcessOptions {
  readonly places: ContainerdPaths
  readonly programs: Pick<Programs, 'containerd' | 'path'>
  readonly clock: Clock
  readonly random: Random
  readonly log: Logger
  /** Command prefix that enters the network namespace of the pods: `nsenter --net=…`. */
  readonly within?: readonly string[]
}

const STOP_MS = 15_000
/** Size at which the log is rotated; one older file is kept. */
const LOG_BYTES = 8 << 20

export interface KeptProcess {
  /** Number of unexpected exits. */
  readonly deaths: number
  /** The last lines of its log. */
  lastLogLines(): Promise<string>
}

/**
 * Runs until `closing`. Containers keep running, since each has a shim. A containerd left by a killed process is
 * stopped first, because only a child process can be watched.
 */
export async function keepContainerd(options: ProcessOptions, closing: AsyncDisposableStack): Promise<KeptProcess> {
  const { places, clock } = options
  await endProcesses(containerdIn(await processes(), places), clock, STOP_MS)
  const kept = await keepProcess(
    {
      ...options,
      name: 'containerd',
      spawn: () => start(options),
      restarted: (signal) => void stopOrphanedShims(options, signal),
      stopMs: STOP_MS,
    },
    closing,
  )
  return {
    get deaths() {
      return kept.deaths
    },
    lastLogLines: () => lastLogLines(places.logFile),
  }
}

/** Time without children after which a shim is orphaned. */
const IDLE_MS = 15_000

async function stopOrphanedShims({ places, clock, log }: ProcessOptions, signal: AbortSignal): Promise<void> {
  const idle = async (): Promise<number[]> => idleShimsIn(await processes(), places)
  const pause = (): Promise<void> => sleep(clock, IDLE_MS, signal, { background: true })
  try {
    await pause()
    const before = new Set(await idle())
    await pause()
    const forgotten = (await idle()).filter((pid) => before.has(pid))
    if (forgotten.length === 0) return
    log.info('Stopping containerd shims without containers', { pids: forgotten })
    await endProcesses(forgotten, clock, 0)
  } catch (error) {
    if (!signal.aborted) log.error(error, 'Failed to stop containerd shims without containers')
  }
}

async function start({ places, programs, within = [] }: ProcessOptions): Promise<ChildProcess> {
  const { size } = await stat(places.logFile).catch(() => ({ size: 0 }))
  if (size > LOG_BYTES) await rename(places.logFile, `${places.logFile}.1`)
  await using log = await open(places.logFile, 'a', 0o600)
  const [program, ...args] = [...within, programs.containerd, '--config', places.configFile]
  return spawn(program, args, {
    // Ctrl-C in a terminal must not reach it; we stop it in order.
    detached: true,
    stdio: ['ignore', log.fd, log.fd],
    cwd: '/',
    env: { PATH: programs.path },
  })
}

const LAST_LINES = 8

async function lastLogLines(file: string): Promise<string> {
  const text = await readFile(file, 'utf8').catch(() => '')
  return text.trim().split('\n').slice(-LAST_LINES).join('\n')
}
