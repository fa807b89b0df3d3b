/**
 * The layout of a history file. New changes are in `run`, a row for each batch. When there are enough, they are sorted by
 * key and packed into the blocks of a segment: the versions of an object beside each other compress well. A segment with
 * `is_whole` has no changes but the complete state at its revision, so that a read needs no segment before it.
 */
import { closeSync, openSync } from 'node:fs'
import { DatabaseSync, type SQLOutputValue } from 'node:sqlite'

import { StorageError } from '#storage/backend.ts'

/** "hyph": identifies our files for file(1), and prevents that we open the database of another program. */
const APPLICATION_ID = 0x68797068
const FORMAT = 1

const SCHEMA = `
  PRAGMA auto_vacuum = INCREMENTAL;
  PRAGMA journal_mode = WAL;
  BEGIN IMMEDIATE;
  CREATE TABLE run (
    last INTEGER PRIMARY KEY, -- revision, as all numbers here without a unit
    first INTEGER NOT NULL,
    from_ms INTEGER NOT NULL,
    raw_bytes INTEGER NOT NULL,
    times BLOB NOT NULL,
    changes BLOB NOT NULL
  );
  CREATE TABLE segment (
    id INTEGER PRIMARY KEY,
    first INTEGER NOT NULL,
    last INTEGER NOT NULL,
    from_ms INTEGER NOT NULL,
    until_ms INTEGER NOT NULL,
    is_whole INTEGER NOT NULL,
    raw_bytes INTEGER NOT NULL,
    times BLOB NOT NULL
  );
  CREATE TABLE block (
    segment INTEGER NOT NULL,
    number INTEGER NOT NULL,
    first_key TEXT NOT NULL,
    last_key TEXT NOT NULL,
    changes BLOB NOT NULL,
    PRIMARY KEY (segment, number)
  );
  CREATE TABLE gap (
    after INTEGER PRIMARY KEY,
    until INTEGER NOT NULL,
    after_ms INTEGER NOT NULL,
    until_ms INTEGER NOT NULL,
    reason TEXT NOT NULL
  );
  CREATE TABLE forgotten (at_ms INTEGER NOT NULL, by TEXT NOT NULL, changes INTEGER NOT NULL);
  PRAGMA application_id = ${APPLICATION_ID};
  PRAGMA user_version = ${FORMAT};
  COMMIT;
`

/** Opens or creates the file. Fails for a file of another program or format. */
export function connect(file: string): DatabaseSync {
  // SQLite gives its other files the same mode.
  closeSync(openSync(file, 'a', 0o600))
  const db = new DatabaseSync(file, { timeout: 5000, returnArrays: true, defensive: true })
  try {
    db.exec(`
      PRAGMA trusted_schema = OFF;
      PRAGMA locking_mode = EXCLUSIVE;
      PRAGMA temp_store = MEMORY;
      PRAGMA cache_size = -1024;
      PRAGMA secure_delete = ON;
      PRAGMA journal_size_limit = ${4 << 20};
    `)
    if (numberOf(db, 'SELECT count(*) FROM sqlite_schema') === 0) db.exec(SCHEMA)
    if (numberOf(db, 'PRAGMA application_id') !== APPLICATION_ID)
      throw new StorageError('corrupt', `"${file}" is not a history of hyperkube; name another file`)
    const format = numberOf(db, 'PRAGMA user_version')
    if (format !== FORMAT)
      throw new StorageError(
        'unavailable',
        `"${file}" has format ${format}, this version of hyperkube reads ${FORMAT}; name another file`,
      )
    // The store has what the last commits miss after a power failure.
    db.exec('PRAGMA synchronous = NORMAL')
    return db
  } catch (error) {
    db.close()
    throw error
  }
}

/** The first column of the first row; 0 without one. */
export function numberOf(db: DatabaseSync, sql: string): number {
  const row = db.prepare(sql).get() as unknown as readonly SQLOutputValue[] | undefined
  return Number(row?.[0] ?? 0)
}

/** Commits what `write` does, or nothing. */
export function transaction<T>(db: DatabaseSync, write: () => T): T {
  db.exec('BEGIN IMMEDIATE')
  try {
    const result = write()
    db.exec('COMMIT')
    return result
  } catch (error) {
    if (db.isTransaction) db.exec('ROLLBACK')
    throw error
  }
}
