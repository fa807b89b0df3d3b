/**
 * The layout of the SQLite database. The table `log` has a row for each change, and its index `log_key` finds the
 * changes of a key in order. The row id combines the revision, the position in the commit and whether the change
 * deletes. Each row has a checksum, because SQLite does not notice a flipped bit.
 */
import { DatabaseSync, type SQLOutputValue, type StatementSync } from 'node:sqlite'
import { crc32 } from 'node:zlib'

import { StorageError, type KeyValue, type Revision } from '../backend.ts'
import type { CommitTime } from '../commit-times.ts'
import { MAX_WRITES_PER_COMMIT } from '../write-check.ts'

/** "hypk": identifies our files for file(1), and prevents that we open the database of another program. */
const APPLICATION_ID = 0x6879706b
const FORMAT = 1

/** A delete has an odd id. */
const IDS_PER_REVISION = 2 * MAX_WRITES_PER_COMMIT

const SCHEMA = `
  PRAGMA auto_vacuum = INCREMENTAL;
  BEGIN IMMEDIATE;
  CREATE TABLE log (
    id INTEGER PRIMARY KEY,
    key TEXT NOT NULL,
    prev INTEGER NOT NULL,    -- id of what the key held before; 0: nothing
    created INTEGER NOT NULL, -- revision
    lease INTEGER NOT NULL,
    crc INTEGER NOT NULL,
    value BLOB
  );
  CREATE INDEX log_key ON log (key, id);
  CREATE INDEX log_lease ON log (lease, id) WHERE lease <> 0;
  CREATE TABLE lease (id INTEGER PRIMARY KEY, ttl_ms INTEGER NOT NULL, crc INTEGER NOT NULL);
  CREATE TABLE meta (name TEXT PRIMARY KEY, value INTEGER NOT NULL, crc INTEGER NOT NULL) WITHOUT ROWID;
  PRAGMA application_id = ${APPLICATION_ID};
  PRAGMA user_version = ${FORMAT};
  COMMIT;
`

/** Added later: a program that does not know the table ignores it. */
const TIMES = `
  CREATE TABLE IF NOT EXISTS commit_time (revision INTEGER PRIMARY KEY, at_ms INTEGER NOT NULL, crc INTEGER NOT NULL)
`

/** The columns of `log` in the order of `Row`. */
export const ROW = 'log.id, log.key, log.prev, log.created, log.lease, log.crc, log.value'

export type Row = readonly [
  id: number,
  key: string,
  prev: number,
  created: Revision,
  lease: number,
  crc: number,
  value: Uint8Array | null,
]

const EMPTY = new Uint8Array()

/** `at` is the place in the commit. */
export function rowId(revision: Revision, at: number, isDelete: boolean): number {
  return revision * IDS_PER_REVISION + 2 * at + (isDelete ? 1 : 0)
}

/** The least id a row of `revision` can have. */
export function firstId(revision: Revision): number {
  return revision * IDS_PER_REVISION
}

export function revisionOf(id: number): Revision {
  return Math.floor(id / IDS_PER_REVISION)
}

export function isDelete(id: number): boolean {
  return id % 2 === 1
}

/** The checksum column of a row with these contents. */
export function rowChecksum(row: readonly [number, string, number, number, number], value: Uint8Array | null): number {
  const head = crc32(`${row[0]} ${row[1]} ${row[2]} ${row[3]} ${row[4]}`)
  return value === null || value.length === 0 ? head : crc32(value, head)
}

/** The row as written, or `corrupt`. */
export function checkedRow(columns: readonly SQLOutputValue[]): Row {
  const row = columns as unknown as Row
  const [id, key, prev, created, lease, crc, value] = row
  if (typeof id !== 'number' || rowChecksum([id, key, prev, created, lease], value) !== crc) {
    throw damaged(`table "log", row ${id}`, key, id)
  }
  return row
}

export function toKeyValue([id, key, , createRevision, lease, , value]: Row): KeyValue {
  return { key, value: value ?? EMPTY, createRevision, modRevision: revisionOf(id), lease }
}

/** The error of a read that found changed bytes. */
export function damaged(place: string, key: unknown, id: unknown): StorageError {
  const revision = typeof id === 'number' ? revisionOf(id) : 'unknown'
  return new StorageError(
    'corrupt',
    `The database is damaged in ${place} (key "${String(key)}", revision ${revision}); restore it from a snapshot`,
  )
}

/** A connection with all settings that durability and speed depend on. */
export function connect(file: string, { readOnly = false }: { readonly readOnly?: boolean } = {}): DatabaseSync {
  const db = new DatabaseSync(file, {
    readOnly,
    timeout: 5000,
    returnArrays: true,
    enableForeignKeyConstraints: false,
    defensive: true,
  })
  db.exec(`
    PRAGMA trusted_schema = OFF;
    PRAGMA cell_size_check = ON;
    PRAGMA temp_store = MEMORY;
    PRAGMA synchronous = FULL;
    PRAGMA fullfsync = ON;
    PRAGMA checkpoint_fullfsync = ON;
    PRAGMA cache_size = -2048;
    PRAGMA wal_autocheckpoint = 0;
    PRAGMA journal_size_limit = ${WAL_BYTES};
  `)
  return db
}

/** The preallocated size of the write-ahead log, to which it shrinks after a burst. */
export const WAL_BYTES: number = 16 << 20

/** Creates the tables in a new file; otherwise checks that the file is ours and of a known format. */
export function prepareSchema(db: DatabaseSync, file: string): void {
  const isNew = numberOf(db, 'SELECT count(*) FROM sqlite_schema') === 0
  if (isNew) db.exec(SCHEMA)
  if (numberOf(db, 'PRAGMA application_id') !== APPLICATION_ID) {
    throw new StorageError('corrupt', `"${file}" is not a hyperkube database; name another file`)
  }
  const format = numberOf(db, 'PRAGMA user_version')
  if (format !== FORMAT) {
    throw new StorageError('unavailable', `"${file}" has format ${format}, this version of hyperkube reads ${FORMAT}`)
  }
  db.exec(TIMES)
}

/** The first column of the first row, which must be a number. */
export function numberOf(db: DatabaseSync, sql: string): number {
  const row = db.prepare(sql).get() as unknown as readonly SQLOutputValue[] | undefined
  return Number(row?.[0] ?? 0)
}

/**
 * - `base`: the least revision the store is at; set by a restore
 * - `compacted`: the oldest readable revision
 * - `swept`: the sweep of compacted rows has passed all rows below this id
 * - `clean`: 1 when the last owner closed the store properly
 */
export type MetaName = 'base' | 'compacted' | 'swept' | 'clean'

export const META = 'SELECT value, crc FROM meta WHERE name = ?'

/** `statement`: META, prepared, for frequent callers. 0 if it was never written. */
export function readMeta(db: DatabaseSync, name: MetaName, statement: StatementSync = db.prepare(META)): number {
  const row = statement.get(name) as unknown as [number, number] | undefined
  if (row === undefined) return 0
  if (crc32(`${name} ${row[0]}`) !== row[1]) throw damaged(`table "meta", row "${name}"`, name, undefined)
  return row[0]
}

export function writeMeta(db: DatabaseSync, name: MetaName, value: number): void {
  db.prepare('INSERT OR REPLACE INTO meta (name, value, crc) VALUES (?, ?, ?)').run(
    name,
    value,
    crc32(`${name} ${value}`),
  )
}

export function leaseChecksum(id: number, ttlMs: number): number {
  return crc32(`${id} ${ttlMs}`)
}

/** Of the times of commits that the database has, in order. */
export function readTimes(db: DatabaseSync): CommitTime[] {
  const rows = db.prepare('SELECT revision, at_ms, crc FROM commit_time ORDER BY revision').all()
  return (rows as unknown as [number, number, number][]).map(([revision, atMs, crc]) => {
    if (timeChecksum(revision, atMs) !== crc) throw damaged(`table "commit_time", row ${revision}`, '', undefined)
    return [revision, atMs]
  })
}

export function timeChecksum(revision: Revision, atMs: number): number {
  return crc32(`${revision} ${atMs}`)
}

/** The revision of the newest commit this connection can see. */
export function latestRevision(db: DatabaseSync): Revision {
  return Math.max(revisionOf(numberOf(db, 'SELECT max(id) FROM log')), readMeta(db, 'base'))
}
