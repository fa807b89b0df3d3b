/** Checks a database for damage. SQLite's own check finds broken pages, and the row checksums find changed contents. */
import type { DatabaseSync } from 'node:sqlite'

import { StorageError } from '../backend.ts'
import { checkedRow, damaged, leaseChecksum, readTimes, ROW } from './layout.ts'

/** Throws `corrupt`, naming the first place found. */
export function checkAll(db: DatabaseSync, file: string): void {
  const report = db.prepare('PRAGMA integrity_check(1)').all() as unknown as [string][]
  const finding = report[0]?.[0]
  if (finding !== 'ok') {
    throw new StorageError('corrupt', `The database "${file}" is damaged: ${finding}; restore it from a snapshot`)
  }
  for (const row of db.prepare(`SELECT ${ROW} FROM log ORDER BY id`).iterate()) checkedRow(row as never)
  for (const row of db.prepare('SELECT id, ttl_ms, crc FROM lease').iterate()) {
    const [id, ttlMs, crc] = row as unknown as [number, number, number]
    if (leaseChecksum(id, ttlMs) !== crc) throw damaged(`table "lease", row ${id}`, '', undefined)
  }
  readTimes(db)
}

/** Verifies up to `limit` rows from `fromId` on, and that the index has them; returns the next id, 0 at the end. */
export function checkRows(db: DatabaseSync, fromId: number, limit: number): number {
  const indexed = db.prepare('SELECT id FROM log INDEXED BY log_key WHERE key = ? AND id = ?')
  let last = 0
  let seen = 0
  for (const columns of db.prepare(`SELECT ${ROW} FROM log WHERE id >= ? ORDER BY id LIMIT ?`).iterate(fromId, limit)) {
    const [id, key] = checkedRow(columns as never)
    if (indexed.get(key, id) === undefined) throw damaged('index "log_key"', key, id)
    last = id
    seen++
  }
  return seen < limit ? 0 : last + 1
}
