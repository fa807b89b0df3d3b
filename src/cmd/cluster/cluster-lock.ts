/**
 * The lock of a data directory. `up` owns it for its whole run; `down` and `reset` own it while they clean up. Only the
 * lock proves that a cluster runs; a pid file or a process name does not.
 */
import { statSync } from 'node:fs'
import { readdir } from 'node:fs/promises'
import { join } from 'node:path'

import { type Clock, sleep } from '#lib/clock.ts'
import { isDatabaseOpen, isOwnerVisible, lockOwner, type LockOwner } from '#lib/process/lock.ts'
import { type ProcessLock, takeProcessLock } from '#lib/process/lock.ts'
import { type ProgramContext, ProgramError } from '#lib/program.ts'

import { comesTrue, readClusterFile } from './cluster-file.ts'
import { isOwnFile } from './data-dir-files.ts'
import { dataDirFlag } from './data-dir.ts'

const CLUSTER_LOCK = 'cluster.lock'
const STORE = 'store.db'
const STORE_LOCK = `${STORE}.lock`

const POLL_MS = 20

/** For `up`. Throws ProgramError if a cluster runs in the directory or another command is working on it. */
export function takeCluster(dataDir: string, env: ProgramContext['env']): ProcessLock {
  const attempt = takeProcessLock(join(dataDir, CLUSTER_LOCK))
  if ('lock' in attempt) return attempt.lock
  throw new ProgramError(
    attempt.owner.use === 'service' ? alreadyRunning(dataDir, attempt.owner, env) : inUpkeep(dataDir, attempt.owner),
  )
}

export function alreadyRunning(dataDir: string, { pid }: LockOwner, env: ProgramContext['env']): string {
  const command = `hyperkube down${dataDirFlag(dataDir, env)}`
  return `A cluster is running in ${dataDir} already (process ${pid}); "${command}" stops it`
}

function inUpkeep(dataDir: string, { pid }: LockOwner): string {
  return `Process ${pid} is stopping or deleting the cluster in ${dataDir}; try again when it has ended`
}

/** The process that owns the lock; undefined without one. Throws ProgramError if the owner cannot be determined. */
export async function clusterOwner(dataDir: string): Promise<LockOwner | undefined> {
  try {
    return lockOwner(join(dataDir, CLUSTER_LOCK)) ?? (await olderOwner(dataDir))
  } catch (error) {
    throw explained(dataDir, error)
  }
}

export interface StoppedCluster {
  readonly wasRunning: boolean
  /** Blocks `up` until it is released; undefined if the directory has no cluster file. */
  readonly lock?: ProcessLock
}

/** Throws ProgramError if the cluster does not stop in time or belongs to another user. */
export async function stopCluster(dataDir: string, clock: Clock, waitMs: number): Promise<StoppedCluster> {
  try {
    if (!(await hasOwnFiles(dataDir))) return { wasRunning: false }
    return await stopAndLock(dataDir, clock, waitMs)
  } catch (error) {
    throw explained(dataDir, error)
  }
}

/**
 * For `reset`: locks the store, which another program may have open. Throws ProgramError in that case, even if the lock
 * file was deleted.
 */
export function takeStore(dataDir: string): ProcessLock | undefined {
  const lock = takeStoreLock(dataDir)
  if (!isDatabaseOpen(join(dataDir, STORE))) return lock
  lock?.release()
  throw new ProgramError(inUse(dataDir, 0))
}

function takeStoreLock(dataDir: string): ProcessLock | undefined {
  const file = join(dataDir, STORE_LOCK)
  if (statSync(file, { throwIfNoEntry: false }) === undefined) return undefined
  const attempt = takeProcessLock(file, 'upkeep')
  if ('lock' in attempt) return attempt.lock
  throw new ProgramError(inUse(dataDir, attempt.owner.pid))
}

function inUse(dataDir: string, pid: number): string {
  return `The store of ${dataDir} is in use by ${processText(pid, 'another process')}; stop it first`
}

/** 0 if the process id is unknown. */
function processText(pid: number, unknown: string): string {
  return pid > 0 ? `process ${pid}` : unknown
}

async function hasOwnFiles(dataDir: string): Promise<boolean> {
  try {
    return (await readdir(dataDir)).some(isOwnFile)
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return false
    throw error
  }
}

async function stopAndLock(dataDir: string, clock: Clock, waitMs: number): Promise<StoppedCluster> {
  const limit = clock.elapsed() + waitMs
  let stopping: LockOwner | undefined
  for (;;) {
    const attempt = takeProcessLock(join(dataDir, CLUSTER_LOCK), 'upkeep')
    const named = 'owner' in attempt ? attempt.owner : undefined
    // A damaged file does not name its owner, but the lock of the store may.
    const owner = named !== undefined && named.pid > 0 ? named : ((await olderOwner(dataDir)) ?? named)
    if (owner === undefined && 'lock' in attempt) {
      await exitOf(stopping, clock, limit)
      return { wasRunning: stopping !== undefined, lock: attempt.lock }
    }
    if ('lock' in attempt) attempt.lock.release()
    // A second signal would kill it without closing anything.
    if (owner !== undefined && owner.use === 'service' && owner.pid > 0 && owner.pid !== stopping?.pid) {
      terminate(dataDir, owner)
      stopping = owner
    }
    if (clock.elapsed() > limit) throw new ProgramError(tooLate(dataDir, owner, stopping))
    await sleep(clock, POLL_MS)
  }
}

function terminate(dataDir: string, owner: LockOwner): void {
  if (!isOwnerVisible(owner))
    throw new ProgramError(
      `A cluster is running in ${dataDir}, in a process that cannot be seen from here (in another container?); stop it there`,
    )
  try {
    process.kill(owner.pid, 'SIGTERM')
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException
    if (code === 'ESRCH') return
    if (code !== 'EPERM') throw error
    throw new ProgramError(
      `The cluster in ${dataDir} (process ${owner.pid}) was started by another user; run this command as that user or as root`,
      { cause: error },
    )
  }
}

/** The lock is released before the process ends: its last messages may still be in flight. */
async function exitOf(owner: LockOwner | undefined, clock: Clock, limit: number): Promise<void> {
  if (owner !== undefined) await comesTrue(clock, limit - clock.elapsed(), () => !isOwnerVisible(owner))
}

function tooLate(dataDir: string, owner: LockOwner | undefined, stopping: LockOwner | undefined): string {
  if (stopping === undefined) return inUpkeep(dataDir, owner ?? { pid: 0, began: 0, use: 'upkeep' })
  const { pid } = stopping
  return `The cluster in ${dataDir} (process ${pid}) has not stopped in time; "kill -9 ${pid}" ends it at once`
}

/** A cluster of an older version that locked only its store. */
async function olderOwner(dataDir: string): Promise<LockOwner | undefined> {
  const owner = lockOwner(join(dataDir, STORE_LOCK))
  if (owner === undefined || owner.use !== 'service') return undefined
  return (await readClusterFile(dataDir))?.pid === owner.pid ? owner : undefined
}

function explained(dataDir: string, error: unknown): unknown {
  const { code, message } = error as NodeJS.ErrnoException
  if (code !== 'EACCES' && code !== 'EPERM') return error
  return new ProgramError(
    `${message}; run this command as the user who started the cluster in ${dataDir}, or as root`,
    { cause: error },
  )
}
