/**
 * The file every commit is flushed to. A flush that makes the file longer also has to wait for the file system's own
 * log, which takes longer than the rest of a commit, so the file is given its full size in advance: zeros, which SQLite
 * takes for the end of what was written. It writes over them, and after a checkpoint starts again at the front.
 */
import { closeSync, fdatasyncSync, fstatSync, openSync, statfsSync, statSync, writeSync } from 'node:fs'
import { dirname } from 'node:path'
import type { DatabaseSync, StatementSync } from 'node:sqlite'

import { numberOf, WAL_BYTES } from './layout.ts'

/** Added in one step, in the time of a few commits. */
const STEP_BYTES = 1 << 20
/** Nothing is added unless this much of the disk stays free: speed is not worth running full sooner. */
const SPARE_BYTES = 2 * WAL_BYTES
/** Enough that a checkpoint is worth its flushes, little enough that it is short and done before the room is used up. */
const CHECKPOINT_BYTES = WAL_BYTES / 2

export class WriteAheadLog {
  readonly #db: DatabaseSync
  readonly #file: string
  readonly #pageBytes: number
  readonly #frames: StatementSync
  /** What the last checkpoint had to leave, as somebody was still reading the past or the disk was full. */
  #leftBytes = 0

  /** `store`: the file of the database that `db` is open on. */
  constructor(db: DatabaseSync, store: string) {
    this.#db = db
    this.#file = `${store}-wal`
    this.#pageBytes = numberOf(db, 'PRAGMA page_size')
    this.#frames = db.prepare('PRAGMA wal_checkpoint(NOOP)')
  }

  /** Whether enough has gathered since the last checkpoint to be worth another. */
  get isCheckpointDue(): boolean {
    const bytes = this.#uncopiedBytes()
    this.#leftBytes = Math.min(this.#leftBytes, bytes)
    return bytes - this.#leftBytes >= CHECKPOINT_BYTES
  }

  /** Outside a transaction: copies what has gathered into the database, as far as nobody stands in the way. */
  checkpoint(): void {
    try {
      this.#db.exec('PRAGMA wal_checkpoint(PASSIVE)')
    } finally {
      this.#leftBytes = this.#uncopiedBytes()
    }
  }

  /** Outside a transaction: adds a little room; false when there is enough, or none to be had. */
  grow(): boolean {
    const size = statSync(this.#file, { throwIfNoEntry: false })?.size ?? WAL_BYTES
    if (size >= WAL_BYTES) return false
    const { bavail, bsize } = statfsSync(dirname(this.#file))
    if (bavail * bsize < SPARE_BYTES + STEP_BYTES) return false
    // With the lock for writing nobody can append meanwhile, not even an operator's tool.
    this.#db.exec('BEGIN IMMEDIATE')
    try {
      return extend(this.#file)
    } catch {
      // It was only for speed; what there is to say about the disk, the next commit will say.
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

/** One for all steps: nobody would collect the garbage of a thread that does little else. */
const ZEROS = Buffer.alloc(STEP_BYTES)

/** SQLite has no locks on this file that closing it would lose: they are all on the database and its index. */
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
