/** What a cluster that runs writes down in its data directory, for `down`, `status` and `reset` to find it. */
import { readFileSync } from 'node:fs'
import { readFile, rm } from 'node:fs/promises'
import { join } from 'node:path'

import type { NodeRuntime } from '#cluster/runtime-choice.ts'
import { writeFileAtomically } from '#lib/atomic-file.ts'
import { type Clock, sleep } from '#lib/clock.ts'

export interface ClusterFile {
  readonly pid: number
  readonly apiServer: string
  readonly kubeconfig: string
  readonly context: string
  readonly startedAt: string
  readonly controllers: number
  readonly scheduler: boolean
  readonly nodes: number
  readonly runtime: NodeRuntime
}

const NAME = 'cluster.json'

export function writeClusterFile(dataDir: string, cluster: ClusterFile): Promise<void> {
  return writeFileAtomically(join(dataDir, NAME), `${JSON.stringify(cluster, undefined, 2)}\n`, { mode: 0o600 })
}

/** The last one that ran here, running or not; undefined: none that is known. */
export async function readClusterFile(dataDir: string): Promise<ClusterFile | undefined> {
  try {
    return JSON.parse(await readFile(join(dataDir, NAME), 'utf8')) as ClusterFile
  } catch (error) {
    if (error instanceof SyntaxError || (error as NodeJS.ErrnoException).code === 'ENOENT') return undefined
    throw error
  }
}

export function removeClusterFile(dataDir: string): Promise<void> {
  return rm(join(dataDir, NAME), { force: true })
}

/** Whether the process is there and is one of ours: numbers are given again to others. */
export function isRunning(pid: number): boolean {
  try {
    process.kill(pid, 0)
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'EPERM'
  }
  try {
    return /hyperkube|entry\.mjs/.test(readFileSync(`/proc/${pid}/cmdline`, 'utf8'))
  } catch {
    // There is no such folder on this system.
    return process.platform !== 'linux'
  }
}

const POLL_MS = 20

/** Whether it is so before the time is over. */
export async function comesTrue(
  clock: Clock,
  limitMs: number,
  isSo: () => boolean | Promise<boolean>,
): Promise<boolean> {
  const limit = clock.elapsed() + limitMs
  while (!(await isSo())) {
    if (clock.elapsed() > limit) return false
    await sleep(clock, POLL_MS)
  }
  return true
}
