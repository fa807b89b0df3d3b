/** The lock of a store: one process owns it until it closes the store or dies. */
import { takeProcessLock, type ProcessLock } from '#lib/process/lock.ts'

import { StorageError } from '../backend.ts'

export type StoreLock = Pick<ProcessLock, 'release'>

/** Throws `unavailable` with the owner, if another process or another backend of this one has the store open. */
export function lockStore(file: string): StoreLock {
  const attempt = takeProcessLock(`${file}.lock`)
  if ('lock' in attempt) return attempt.lock
  const { pid } = attempt.owner
  const owner = pid === 0 ? 'another process' : `process ${pid}`
  throw new StorageError('unavailable', `"${file}" is in use by ${owner}; stop it, or name another file`)
}
