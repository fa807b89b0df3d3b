/**
 * Writes to the SQLite database over the only connection that changes it. It executes a group of operations in one
 * transaction with one flush, and returns results only when the transaction is durable.
 */
import type { DatabaseSync, StatementSync } from 'node:sqlite'

import { StorageError, type LeaseId, type Revision, type Write } from '../backend.ts'
import { CommitTimes } from '../commit-times.ts'
import { futureRevisionError } from '../event-feed.ts'
import { leaseNotFound } from '../leases.ts'
import { MAX_WRITES_PER_COMMIT } from '../write-check.ts'
import { asStorageError, isBusy, toPlain } from './failures.ts'
import {
  checkedRow,
  damaged,
  isDelete,
  latestRevision,
  leaseChecksum,
  readMeta,
  readTimes,
  revisionOf,
  ROW,
  rowChecksum,
  rowId,
  timeChecksum,
  toKeyValue,
  writeMeta,
  type Row,
} from './layout.ts'
import { packItems, unpackWrites, type Deletion, type Operation, type Result, type StoreState } from './messages.ts'

export class Writer {
  readonly #db: DatabaseSync
  readonly #statements: ReturnType<typeof prepareStatements>
  readonly #leases = new Map<LeaseId, number>()
  /** The revision of the last operation, in a transaction that may still be open. */
  #revision: Revision
  #compacted: Revision
  #times: CommitTimes
  /** The time of the commits of the running operations. */
  #nowMs = 0
  /** While set, only deletes are allowed. */
  #noSpace: StorageError | undefined
  /** While set, nothing is executed: the database can no longer be trusted. */
  #broken: StorageError | undefined
  /** The first damaged row found; the rest of the store keeps working. */
  #damage: StorageError | undefined

  constructor(db: DatabaseSync) {
    this.#db = db
    this.#statements = prepareStatements(db)
    this.#revision = latestRevision(db)
    this.#compacted = readMeta(db, 'compacted')
    this.#times = new CommitTimes(readTimes(db))
    this.#loadLeases()
  }

  get state(): Omit<StoreState, 'isChecked'> {
    const { entries: times } = this.#times
    return { revision: this.#revision, compactedRevision: this.#compacted, leases: [...this.#leases], times }
  }

  /** The problem, if any. */
  get trouble(): StorageError | undefined {
    return this.#broken ?? this.#damage ?? this.#noSpace
  }

  get isBroken(): boolean {
    return this.#broken !== undefined
  }

  get hasSpace(): boolean {
    return this.#noSpace === undefined
  }

  /** Allows only deletes, until it is called with undefined. */
  setNoSpace(error: StorageError | undefined): void {
    this.#noSpace = error
  }

  /**
   * Executes all operations in one transaction at `nowMs`, with `upkeep` at its end. Returns their durable results. Throws
   * `no-space` if there was no room; then nothing has happened and the group can be retried.
   */
  run(operations: readonly Operation[], nowMs: number, upkeep: () => void): Result[] {
    this.#nowMs = nowMs
    if (this.#broken !== undefined) return operations.map(() => this.#failure(this.#broken))
    try {
      this.#db.exec('BEGIN IMMEDIATE')
      const results = operations.map((operation) => this.#perform(operation))
      upkeep()
      this.#db.exec('COMMIT')
      return results
    } catch (cause) {
      const error = asStorageError(cause)
      this.#rollBack(error)
      if (error.code === 'no-space') throw error
      return operations.map(() => this.#failure(error))
    }
  }

  /** Marks a clean close. */
  markClean(isClean: boolean): void {
    writeMeta(this.#db, 'clean', isClean ? 1 : 0)
  }

  #rollBack(error: StorageError): void {
    // The effect of a failed flush is unknown: stopping is safer than continuing.
    if (error.code !== 'no-space' && !isBusy(error)) this.#broken = error
    try {
      if (this.#db.isTransaction) this.#db.exec('ROLLBACK')
      this.#revision = latestRevision(this.#db)
      this.#compacted = readMeta(this.#db, 'compacted')
      this.#times = new CommitTimes(readTimes(this.#db))
      this.#loadLeases()
    } catch (cause) {
      this.#broken ??= asStorageError(cause)
    }
  }

  #loadLeases(): void {
    this.#leases.clear()
    for (const row of this.#statements.leases.all()) {
      const [id, ttlMs, crc] = row as unknown as [LeaseId, number, number]
      if (leaseChecksum(id, ttlMs) !== crc) throw damaged(`table "lease", row ${id}`, '', undefined)
      this.#leases.set(id, ttlMs)
    }
  }

  #failure(error: unknown): Result {
    return ['error', toPlain(error)]
  }

  /** A StorageError belongs to this operation; other errors end the transaction. */
  #perform(operation: Operation): Result {
    try {
      switch (operation[0]) {
        case 'commit':
          return this.#commit(unpackWrites(operation[1]))
        case 'grant':
          return this.#grant(operation[1], operation[2])
        case 'revoke':
          return this.#revoke(operation[1])
        case 'compact':
          return this.#compact(operation[1])
      }
    } catch (error) {
      if (!(error instanceof StorageError)) throw error
      if (error.code === 'corrupt') this.#damage ??= error
      return this.#failure(error)
    }
  }

  #commit(writes: readonly Write[]): Result {
    for (const { lease } of writes) if (lease && !this.#leases.has(lease)) throw leaseNotFound(lease)
    const before = writes.map(({ key }) => this.#current(key))
    const found = packItems(before.map((row) => (row === undefined ? undefined : toKeyValue(row))))
    for (const [at, { expected }] of writes.entries()) {
      if (expected === undefined) continue
      const current = found[4 * at]
      if (current !== expected) return ['commit', false, this.#revision, found]
    }
    if (this.#noSpace !== undefined && writes.some(({ value }) => value !== null)) throw this.#noSpace
    const revision = this.#revision + 1
    let changes = 0
    for (const [at, write] of writes.entries()) {
      const previous = before[at]
      if (write.value === null && previous === undefined) continue
      this.#insert(rowId(revision, changes++, write.value === null), write, previous)
    }
    if (changes > 0) this.#moveTo(revision)
    return ['commit', true, this.#revision, found]
  }

  #moveTo(revision: Revision): void {
    this.#revision = revision
    const atMs = this.#times.note(revision, this.#nowMs)
    if (atMs !== undefined) this.#statements.addTime.run(revision, atMs, timeChecksum(revision, atMs))
  }

  /** The row of the current value. */
  #current(key: string): Row | undefined {
    const found = this.#statements.lastId.get(key) as unknown as [number] | undefined
    if (found === undefined) return undefined
    const [id] = found
    const columns = this.#statements.row.get(id)
    if (columns === undefined) throw damaged('index "log_key"', key, id)
    const row = checkedRow(columns as never)
    if (row[1] !== key) throw damaged('index "log_key"', key, id)
    return isDelete(id) ? undefined : row
  }

  #insert(id: number, { key, value, lease = 0 }: Write, previous: Row | undefined): void {
    const prev = previous?.[0] ?? 0
    const created = previous?.[3] ?? revisionOf(id)
    const bound = value === null ? 0 : lease
    const crc = rowChecksum([id, key, prev, created, bound], value)
    this.#statements.insert.run(id, key, prev, created, bound, crc, value)
  }

  #grant(lease: LeaseId, ttlMs: number): Result {
    if (this.#noSpace !== undefined) throw this.#noSpace
    this.#statements.addLease.run(lease, ttlMs, leaseChecksum(lease, ttlMs))
    this.#leases.set(lease, ttlMs)
    return ['done']
  }

  #revoke(lease: LeaseId): Result {
    if (!this.#leases.has(lease)) throw leaseNotFound(lease)
    // All are read before the first is deleted: a damaged row must not leave the work half done.
    const rows = this.#boundTo(lease)
    const first = this.#revision + 1
    const deletions = rows.map((row, at): Deletion => {
      const revision = first + Math.floor(at / MAX_WRITES_PER_COMMIT)
      this.#insert(rowId(revision, at % MAX_WRITES_PER_COMMIT, true), { key: row[1], value: null }, row)
      this.#moveTo(revision)
      return [revision, toKeyValue(row)]
    })
    this.#statements.endLease.run(lease)
    this.#leases.delete(lease)
    return ['revoked', deletions]
  }

  /** The rows of the keys whose last write was made with the lease. */
  #boundTo(lease: LeaseId): Row[] {
    const rows: Row[] = []
    for (const [key, id] of this.#statements.leased.all(lease) as unknown as [string, number][]) {
      const row = this.#current(key)
      if (row?.[0] === id) rows.push(row)
    }
    return rows
  }

  #compact(revision: Revision): Result {
    if (revision > this.#revision) throw futureRevisionError(revision, this.#revision)
    if (revision <= this.#compacted) return ['done']
    writeMeta(this.#db, 'compacted', revision)
    this.#compacted = revision
    this.#times.forget(revision)
    this.#statements.forgetTimes.run(this.#times.entries[0]?.[0] ?? 0)
    return ['done']
  }
}

function prepareStatements(
  db: DatabaseSync,
): Record<
  'lastId' | 'row' | 'insert' | 'addTime' | 'forgetTimes' | 'leases' | 'addLease' | 'endLease' | 'leased',
  StatementSync
> {
  return {
    lastId: db.prepare('SELECT id FROM log INDEXED BY log_key WHERE key = ? ORDER BY id DESC LIMIT 1'),
    row: db.prepare(`SELECT ${ROW} FROM log WHERE id = ?`),
    insert: db.prepare('INSERT INTO log (id, key, prev, created, lease, crc, value) VALUES (?, ?, ?, ?, ?, ?, ?)'),
    addTime: db.prepare('INSERT INTO commit_time (revision, at_ms, crc) VALUES (?, ?, ?)'),
    forgetTimes: db.prepare('DELETE FROM commit_time WHERE revision < ?'),
    leases: db.prepare('SELECT id, ttl_ms, crc FROM lease'),
    addLease: db.prepare('INSERT INTO lease (id, ttl_ms, crc) VALUES (?, ?, ?)'),
    endLease: db.prepare('DELETE FROM lease WHERE id = ?'),
    leased: db.prepare('SELECT key, id FROM log INDEXED BY log_lease WHERE lease = ? AND lease <> 0 ORDER BY id'),
  }
}
