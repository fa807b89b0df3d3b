/** Puts a snapshot where a store is, and keeps the store that was there. */
import { existsSync, linkSync, renameSync, rmSync } from 'node:fs'
import { dirname } from 'node:path'

import type { Revision } from '../backend.ts'
import { flushFolder } from './durable-file.ts'
import { connect, latestRevision } from './layout.ts'
import { lockStore } from './lock.ts'
import { restoreSqlite } from './restore.ts'
import { findLostCommits } from './wal-check.ts'

export interface Replaced {
  readonly revision: Revision
  readonly kept?: string
}

/**
 * Verifies everything before it touches anything. The old store, with its log, is at `keepAs` afterwards. Fails with
 * `unavailable` when somebody uses the store.
 */
export function replaceSqlite(snapshot: string, target: string, keepAs: string): Replaced {
  const lock = lockStore(target)
  const fresh = `${target}.restored`
  try {
    for (const side of SIDES) rmSync(`${fresh}${side}`, { force: true })
    const hasOld = existsSync(target)
    const lead = hasOld ? revisionOf(target) - revisionOf(snapshot) : 0
    const revision = restoreSqlite(snapshot, fresh, lead > 0 ? { bumpRevision: lead + MARGIN } : {})
    if (hasOld) keep(target, keepAs)
    flushFolder(dirname(target))
    // The old log must not be there when the new store is: it would be taken for the new one's.
    for (const side of ['-wal', '-shm']) rmSync(`${target}${side}`, { force: true })
    renameSync(fresh, target)
    flushFolder(dirname(target))
    return { revision, ...(hasOld && { kept: keepAs }) }
  } finally {
    for (const side of SIDES) rmSync(`${fresh}${side}`, { force: true })
    lock.release()
  }
}

/** The store may have been asked for more than its last commit says: a lease that ended, a commit that was lost. */
const MARGIN = 1_000_000

const SIDES = ['', '-wal', '-shm', '.lock'] as const

function keep(target: string, keepAs: string): void {
  for (const side of ['', '-wal']) {
    if (existsSync(`${target}${side}`)) linkSync(`${target}${side}`, `${keepAs}${side}`)
  }
}

/** 0 when it cannot be read without changing it: being damaged is why it is replaced. */
function revisionOf(file: string): Revision {
  if (findLostCommits(file) !== undefined) return 0
  try {
    const db = connect(file)
    try {
      return latestRevision(db)
    } finally {
      db.close()
    }
  } catch {
    return 0
  }
}
