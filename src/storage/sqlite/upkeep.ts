/**
 * Keeps the database small, in short steps between commits. It removes compacted rows and returns free pages to the
 * file system.
 */
import { closeSync, fsyncSync, openSync, rmSync, statfsSync, statSync, writeSync } from 'node:fs'
import { dirname } from 'node:path'
import type { DatabaseSync, StatementSync } from 'node:sqlite'

import { StorageError } from '../backend.ts'
import { firstId, isDelete, META, numberOf, readMeta, writeMeta } from './layout.ts'

/** The minimum of rows per step; some 20 microseconds each. */
export const SWEEP_ROWS = 64
/** Free pages are kept for reuse up to this share of the file, and up to this number in any case. */
const FREE_SHARE = 0.25
const FREE_PAGES = 1024
/** Pages given back in one step. */
const VACUUM_PAGES = 64

export class Upkeep {
  readonly #db: DatabaseSync
  readonly #next: StatementSync
  readonly #remove: StatementSync
  readonly #meta: StatementSync

  constructor(db: DatabaseSync) {
    this.#db = db
    this.#next = db.prepare('SELECT id, prev FROM log WHERE id >= ? AND id < ? ORDER BY id LIMIT ?')
    this.#remove = db.prepare('DELETE FROM log WHERE id = ?')
    this.#meta = db.prepare(META)
  }

  /** True if there is something to sweep. */
  get isDue(): boolean {
    return this.#read('swept') < firstId(this.#read('compacted'))
  }

  /** Inside a transaction: removes rows that the next `rows` rows have replaced. */
  sweep(rows: number): void {
    const from = this.#read('swept')
    const end = firstId(this.#read('compacted'))
    if (from >= end) return
    const found = this.#next.all(from, end, rows) as unknown as [id: number, prev: number][]
    for (const [id, prev] of found) {
      // A row replaced at or after the compacted revision is still needed as that event's previous value.
      if (prev !== 0) this.#remove.run(prev)
      if (isDelete(id)) this.#remove.run(id)
    }
    writeMeta(this.#db, 'swept', found.length < rows ? end : (found.at(-1)?.[0] ?? 0) + 1)
  }

  /** Outside a transaction: frees some pages; false if there are not too many. */
  vacuum(): boolean {
    const free = numberOf(this.#db, 'PRAGMA freelist_count')
    if (free <= FREE_PAGES || free <= FREE_SHARE * numberOf(this.#db, 'PRAGMA page_count')) return false
    this.#db.exec(`PRAGMA incremental_vacuum(${VACUUM_PAGES})`)
    return true
  }

  #read(name: 'swept' | 'compacted'): number {
    return readMeta(this.#db, name, this.#meta)
  }

  /** The used bytes of the file. */
  usedBytes(): number {
    const pages = numberOf(this.#db, 'PRAGMA page_count') - numberOf(this.#db, 'PRAGMA freelist_count')
    return pages * numberOf(this.#db, 'PRAGMA page_size')
  }
}

/** Reserved disk space, released when the disk is full. */
export class Ballast {
  readonly #file: string
  readonly #bytes: number

  constructor(store: string, bytes: number) {
    this.#file = `${store}.ballast`
    this.#bytes = bytes
  }

  /** Takes the space; false if the disk does not have it and a margin beyond. */
  take(): boolean {
    if (this.#bytes === 0 || statSync(this.#file, { throwIfNoEntry: false })?.size === this.#bytes) return true
    try {
      const { bavail, bsize } = statfsSync(dirname(this.#file))
      if (bavail * bsize < 2 * this.#bytes) return false
      const handle = openSync(this.#file, 'w', 0o600)
      try {
        const chunk = Buffer.alloc(64 << 10, 'hyperkube ballast: gives deletes room on a full disk. ')
        for (let at = 0; at < this.#bytes; at += chunk.length) {
          writeSync(handle, chunk, 0, Math.min(chunk.length, this.#bytes - at))
        }
        fsyncSync(handle)
      } finally {
        closeSync(handle)
      }
      return true
    } catch {
      // Any failed write means that the space is not available now.
      this.release()
      return false
    }
  }

  release(): void {
    rmSync(this.#file, { force: true })
  }
}

/** The error of a write when the store has reached its own limit. */
export function quotaError(quotaBytes: number): StorageError {
  return new StorageError('no-space', `The store has reached its limit of ${quotaBytes} bytes; delete something`)
}
