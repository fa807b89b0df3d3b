/** Copies a SQLite store that another process may be using. */
import { existsSync } from 'node:fs'

import { StorageError, type Revision } from '../backend.ts'
import { asStorageError } from './failures.ts'
import { lockStore, type StoreLock } from './lock.ts'
import { Reader } from './reader.ts'
import { findLostCommits } from './wal-check.ts'

/** A consistent, durable copy of the store in `file`; returns the revision it holds. */
export async function copySqlite(file: string, target: string): Promise<Revision> {
  if (!existsSync(file)) throw new StorageError('unavailable', `There is no store in "${file}"; name another one`)
  const lock = tryLock(file)
  try {
    // Opening an unused store replays its log, which must be sound.
    const lost = lock === undefined ? undefined : findLostCommits(file)
    if (lost !== undefined) throw lost
    const reader = new Reader(file)
    try {
      return await reader.snapshot(target)
    } finally {
      reader.close()
    }
  } catch (cause) {
    throw asStorageError(cause)
  } finally {
    lock?.release()
  }
}

/** Undefined if a server has the store and handles its log itself. */
function tryLock(file: string): StoreLock | undefined {
  try {
    return lockStore(file)
  } catch {
    return undefined
  }
}
