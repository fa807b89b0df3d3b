/**
 * Preallocates the write-ahead log with zeros. A flush is faster if it does not extend the file; SQLite treats the
 * zeros as the end of the log.
 */
import { closeSync, fdatasyncSync, fstatSync, openSync, statfsSync, statSync, writeSync } from 'node:fs'
import { dirname } from 'node:path'
import type { DatabaseSync, StatementSync } from 'node:sqlite'

import { numberOf, WAL_BYTES } from './layout.ts'

/** Added in one step, in the time of a few commits. */
const STEP_BYTES = 1 << 20
/** Nothing is added unless this much of the disk stays free. */
const SPARE_BYTES = 2 * WAL_BYTES
/** Enough content to make a checkpoint worth its flushes, and little enough to keep it short. */
const CHECKPOINT_BYTES = WAL_BYTES / 2

export class WriteAheadLog {
  readonly #db: DatabaseSync
  readonly #file: string
  readonly #pageBytes: number
  readonly #frames: StatementSync
  /** The rest that the last checkpoint had to leave, because of a reader of the past or a full disk. */
  #leftBytes = 0

  /** `store`: the file of the database that `db` is open on. */
  constructor(db: DatabaseSync, store: string) {
    this.#db = db
    this.#file = `${store}-wal`
    this.#pageBytes = numberOf(db, 'PRAGMA page_size')
    this.#frames = db.prepare('PRAGMA wal_checkpoint(NOOP)')
  }

  /** True if a checkpoint is worthwhile. */
  get isCheckpointDue(): boolean {
    const bytes = this.#uncopiedBytes()
    this.#leftBytes = Math.min(this.#leftBytes, bytes)
    return bytes - this.#leftBytes >= CHECKPOINT_BYTES
  }

  /** Outside a transaction: copies the log into the database, as far as readers allow. */
  checkpoint(): void {
    try {
      this.#db.exec('PRAGMA wal_checkpoint(PASSIVE)')
    } finally {
      this.#leftBytes = this.#uncopiedBytes()
    }
  }

  /** Outside a transaction: extends the file a little; false if it is large enough or there is no space. */
  grow(): boolean {
    const size = statSync(this.#file, { throwIfNoEntry: false })?.size ?? WAL_BYTES
    if (size >= WAL_BYTES) return false
    const { bavail, bsize } = statfsSync(dirname(this.#file))
    if (bavail * bsize < SPARE_BYTES + STEP_BYTES) return false
    // With the write lock no process can append meanwhile, not even an operator's tool.
    this.#db.exec('BEGIN IMMEDIATE')
    try {
      return extend(this.#file)
    } catch {
      // It was only for speed; the next commit reports problems of the disk.
      return false
    } finally {
      this.#db.exec('ROLLBACK')
    }
  }

  #uncopiedBytes(): number {
    const [, written, copied] = this.#frames.get() as unknown as [number, number, number]
    return (written - copied) * this.#pageBytes
  }
}

/** Shared by all steps: this thread rarely collects garbage. */
const ZEROS = Buffer.alloc(STEP_BYTES)

/** Closing this file loses no SQLite locks: they are all on the database and its index. */
function extend(file: string): boolean {
  const handle = openSync(file, 'r+')
  try {
    const { size } = fstatSync(handle)
    const bytes = Math.min(STEP_BYTES, WAL_BYTES - size)
    if (bytes > 0) writeSync(handle, ZEROS, 0, bytes, size)
    fdatasyncSync(handle)
    return bytes > 0
  } finally {
    closeSync(handle)
  }
}
