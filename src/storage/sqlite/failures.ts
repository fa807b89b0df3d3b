/** Translates SQLite's errors, and transfers errors between threads. */
import { StorageError, type Revision, type StorageErrorCode } from '../backend.ts'

/** https://sqlite.org/rescode.html */
const SQLITE_BUSY = 5
const SQLITE_IOERR = 10
const SQLITE_CORRUPT = 11
const SQLITE_FULL = 13
const SQLITE_NOTADB = 26
/** A write or an extension of the shared memory failed: in practice a quota, or a file system that reports late. */
const SQLITE_IOERR_WRITE = 778
const SQLITE_IOERR_SHMSIZE = 4874

function isSqliteError(error: unknown): error is Error & { readonly errcode: number } {
  return error instanceof Error && 'errcode' in error && typeof error.errcode === 'number'
}

/** As a StorageError; errors that are not SQLite's become `unavailable`. */
export function asStorageError(error: unknown): StorageError {
  if (error instanceof StorageError) return error
  const cause = error instanceof Error ? error : new Error(String(error))
  const code = isSqliteError(error) ? error.errcode : 0
  if (isFull(code)) {
    return new StorageError('no-space', `The disk of the database is full: ${cause.message}; free some space`, {
      cause,
    })
  }
  if ((code & 0xff) === SQLITE_CORRUPT || (code & 0xff) === SQLITE_NOTADB) {
    return new StorageError('corrupt', `The database is damaged: ${cause.message}; restore it from a snapshot`, {
      cause,
    })
  }
  const kind = (code & 0xff) === SQLITE_IOERR ? 'The disk of the database fails' : 'The database cannot be used'
  return new StorageError('unavailable', `${kind}: ${cause.message} (code ${code})`, { cause })
}

/** Another process, perhaps an operator's tool, locked the database for too long; nothing has happened. */
export function isBusy(error: StorageError): boolean {
  return isSqliteError(error.cause) && (error.cause.errcode & 0xff) === SQLITE_BUSY
}

function isFull(code: number): boolean {
  return (code & 0xff) === SQLITE_FULL || code === SQLITE_IOERR_WRITE || code === SQLITE_IOERR_SHMSIZE
}

/** A StorageError in transferable form. */
export interface PlainError {
  readonly code: StorageErrorCode
  readonly message: string
  readonly compactedRevision?: Revision
}

export function toPlain(error: unknown): PlainError {
  const { code, message, compactedRevision } = asStorageError(error)
  return { code, message, ...(compactedRevision !== undefined && { compactedRevision }) }
}

export function fromPlain({ code, message, compactedRevision }: PlainError): StorageError {
  return new StorageError(code, message, compactedRevision === undefined ? {} : { compactedRevision })
}
