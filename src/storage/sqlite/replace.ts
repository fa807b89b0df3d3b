/** Replaces a store by a snapshot, and keeps the old store. */
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
 * Verifies everything before it changes anything. Afterwards the old store, with its log, is at `keepAs`. Fails with
 * `unavailable` if the store is in use.
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
    // The old log must not be beside the new store, which would replay it.
    for (const side of ['-wal', '-shm']) rmSync(`${target}${side}`, { force: true })
    renameSync(fresh, target)
    flushFolder(dirname(target))
    return { revision, ...(hasOld && { kept: keepAs }) }
  } finally {
    for (const side of SIDES) rmSync(`${fresh}${side}`, { force: true })
    lock.release()
  }
}

/** The store may have used later revisions than its last commit shows: an expired lease, a lost commit. */
const MARGIN = 1_000_000

const SIDES = ['', '-wal', '-shm', '.lock'] as const

function keep(target: string, keepAs: string): void {
  for (const side of ['', '-wal']) {
    if (existsSync(`${target}${side}`)) linkSync(`${target}${side}`, `${keepAs}${side}`)
  }
}

/** 0 if it cannot be read without changing it: damage may be the reason for replacing it. */
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
