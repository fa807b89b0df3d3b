/**
 * Writes and reads the file in the data directory that describes a running cluster. The lock beside it shows whether
 * the cluster still runs.
 */
import { readFile, rm } from 'node:fs/promises'
import { join } from 'node:path'

import type { NodeRuntime } from '#cluster/runtime-choice.ts'
import { type Clock, sleep } from '#lib/clock.ts'
import { writeFileAtomically } from '#lib/files/atomic-file.ts'

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

/** The last cluster that became ready here, running or not; undefined without a record. */
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

const POLL_MS = 20

/** True if the condition is met before the timeout. */
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
