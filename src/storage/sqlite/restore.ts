/**
 * Creates a store from a snapshot. New revisions continue far above those of the snapshot, so no revision repeats and
 * old watchers must list again.
 */
import { chmodSync, copyFileSync, existsSync, renameSync, rmSync, statSync } from 'node:fs'
import { dirname } from 'node:path'

import { StorageError, type Revision } from '../backend.ts'
import { checkAll } from './check.ts'
import { flushFile, flushFolder } from './durable-file.ts'
import { asStorageError } from './failures.ts'
import { connect, latestRevision, numberOf, prepareSchema, writeMeta } from './layout.ts'
import { lockStore } from './lock.ts'

/** More than the lost store can have advanced after the snapshot: at 1,000 commits per second, a quarter of an hour. */
const BUMP_REVISION = 1_000_000

export interface RestoreOptions {
  /** The increment of the revisions; default 1,000,000. Use more for an older snapshot. */
  readonly bumpRevision?: number
}

/**
 * Verifies `snapshot` and writes it to `target`, which must not exist. Returns the revision of the new store. For a
 * command: it blocks the calling thread until everything is on the disk.
 */
export function restoreSqlite(snapshot: string, target: string, options: RestoreOptions = {}): Revision {
  const { bumpRevision = BUMP_REVISION } = options
  if (existsSync(target)) {
    throw new StorageError('unavailable', `"${target}" already exists; move it away, or name another file`)
  }
  if ((statSync(`${snapshot}-wal`, { throwIfNoEntry: false })?.size ?? 0) > 0) {
    throw new StorageError('unavailable', `"${snapshot}" is a store, not a snapshot; open it, or take a snapshot of it`)
  }
  const lock = lockStore(target)
  const part = `${target}.part`
  try {
    copyFileSync(snapshot, part)
    chmodSync(part, 0o600)
    const revision = moveUp(part, bumpRevision)
    for (const path of [`${target}-wal`, `${target}-shm`]) rmSync(path, { force: true })
    flushFile(part)
    renameSync(part, target)
    flushFolder(dirname(target))
    return revision
  } catch (cause) {
    rmSync(part, { force: true })
    throw asStorageError(cause)
  } finally {
    lock.release()
  }
}

function moveUp(file: string, by: number): Revision {
  const db = connect(file)
  try {
    if (numberOf(db, 'SELECT count(*) FROM sqlite_schema') === 0) {
      throw new StorageError('corrupt', `The snapshot is empty; take another one`)
    }
    prepareSchema(db, file)
    db.exec('PRAGMA journal_mode = DELETE')
    checkAll(db, file)
    const revision = latestRevision(db) + by
    db.exec('BEGIN IMMEDIATE')
    writeMeta(db, 'base', revision)
    writeMeta(db, 'compacted', revision)
    writeMeta(db, 'clean', 1)
    db.exec('COMMIT')
    return revision
  } finally {
    db.close()
  }
}
