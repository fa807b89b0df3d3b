import assert from 'node:assert/strict'
import { copyFileSync, mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { DatabaseSync } from 'node:sqlite'
import { describe, it, type TestContext } from 'node:test'

import { connect, latestRevision, numberOf, prepareSchema, WAL_BYTES } from './layout.ts'
import { packWrites } from './messages.ts'
import { findLostCommits } from './wal-check.ts'
import { WriteAheadLog } from './write-ahead-log.ts'
import { Writer } from './writer.ts'

const FRAME_BYTES = 4096 + 24

interface Store {
  readonly file: string
  readonly db: DatabaseSync
  readonly log: WriteAheadLog
  readonly logBytes: () => number
  /** Makes `count` commits of `bytes` each, each flushed. */
  readonly write: (count: number, bytes?: number) => void
}

function openStore(t: TestContext): Store {
  const folder = mkdtempSync(join(tmpdir(), 'sqlite-log-'))
  const file = join(folder, 'store.db')
  const db = connect(file)
  t.after(() => {
    if (db.isOpen) db.close()
    rmSync(folder, { recursive: true })
  })
  prepareSchema(db, file)
  db.exec('PRAGMA journal_mode = WAL')
  const writer = new Writer(db)
  writer.markClean(false)
  const write = (count: number, bytes = 1000): void => {
    for (let n = 0; n < count; n++) {
      const value = new Uint8Array(bytes).fill(n)
      const [result] = writer.run([['commit', packWrites([{ key: `k${n % 7}`, value }])]], 1, () => undefined)
      assert.equal(result?.[0], 'commit')
    }
  }
  return { file, db, log: new WriteAheadLog(db, file), logBytes: () => statSync(`${file}-wal`).size, write }
}

function growFully(log: WriteAheadLog): void {
  for (let steps = 0; log.grow(); steps++) assert.ok(steps < 1000, 'it comes to an end')
}

/** The store's files after a power cut, modified by `change`. */
function cut(store: Store, change: (log: Buffer) => Buffer = (log) => log): string {
  const copy = `${store.file}.copy`
  rmSync(`${copy}-shm`, { force: true })
  copyFileSync(store.file, copy)
  writeFileSync(`${copy}-wal`, change(readFileSync(`${store.file}-wal`)))
  return copy
}

function reopen(file: string): { revision: number; rows: number; report: unknown } {
  assert.equal(findLostCommits(file), undefined)
  const db = connect(file)
  try {
    const report = db.prepare('PRAGMA integrity_check').get()
    return { revision: latestRevision(db), rows: numberOf(db, 'SELECT count(*) FROM log'), report }
  } finally {
    db.close()
  }
}

/** The position of the next frame. */
function frameBytes(db: DatabaseSync): number {
  const [, written] = db.prepare('PRAGMA wal_checkpoint(NOOP)').get() as unknown as [number, number, number]
  return 32 + FRAME_BYTES * written
}

const whole = (commits: number): object => ({ revision: commits, rows: commits, report: ['ok'] })

describe('write-ahead log of SQLite', () => {
  it('is preallocated, keeps its size, and is removed when the store is closed', (t) => {
    const { log, logBytes, write, db, file } = openStore(t)
    const before = logBytes()
    assert.equal(log.grow(), true)
    assert.ok(logBytes() > before && logBytes() < WAL_BYTES, 'a step at a time')
    growFully(log)
    assert.equal(logBytes(), WAL_BYTES)
    for (let round = 0; round < 3; round++) {
      write(50)
      assert.equal(logBytes(), WAL_BYTES)
      log.checkpoint()
    }
    assert.equal(log.grow(), false)
    write(1, WAL_BYTES)
    assert.ok(logBytes() > WAL_BYTES, 'more than it has room for')
    log.checkpoint()
    write(1)
    assert.equal(logBytes(), WAL_BYTES, 'back after the burst')
    db.close()
    assert.equal(statSync(`${file}-wal`, { throwIfNoEntry: false }), undefined)
  })

  it('is preallocated again after another process truncates it', (t) => {
    const store = openStore(t)
    store.log.grow()
    store.write(3)
    store.db.exec('PRAGMA wal_checkpoint(TRUNCATE)')
    assert.equal(store.logBytes(), 0)
    assert.equal(store.log.grow(), true)
    assert.ok(store.logBytes() > 0)
    assert.deepEqual(reopen(cut(store)), whole(3))
    store.write(4)
    assert.deepEqual(reopen(cut(store)), whole(7))
  })

  it('loses no commit if zeros or frames of an earlier checkpoint follow', (t) => {
    const store = openStore(t)
    store.write(20)
    assert.deepEqual(reopen(cut(store)), whole(20), 'not grown')
    store.log.grow()
    store.log.grow()
    assert.deepEqual(reopen(cut(store)), whole(20), 'followed by zeros')
    store.write(200)
    assert.deepEqual(reopen(cut(store)), whole(220), 'written over zeros')
    store.log.checkpoint()
    store.write(5)
    assert.deepEqual(reopen(cut(store)), whole(225), 'written over an earlier round')
  })

  it('ends before a torn commit, whether zeros or frames of an earlier checkpoint follow', (t) => {
    const store = openStore(t)
    store.log.grow()
    for (const commits of [20, 40]) {
      store.write(19)
      const start = frameBytes(store.db)
      const before = readFileSync(`${store.file}-wal`)
      store.write(1)
      const end = frameBytes(store.db)
      assert.deepEqual(reopen(cut(store)), whole(commits))
      // Any part of it may be missing on the disk, also in its middle.
      const parts = [
        [start, end],
        [start + 2000, end],
        [start + 24, start + 4000],
      ] as const
      for (const [from, to] of parts) {
        const torn = cut(store, (log) => log.fill(before.subarray(from, to), from, to))
        assert.deepEqual(reopen(torn), whole(commits - 1), `${from} to ${to} are missing`)
      }
      store.log.checkpoint()
    }
  })

  it('needs a checkpoint depending on its size, but not again at once if a reader prevented one', (t) => {
    const { log, write, db, file } = openStore(t)
    log.grow()
    write(10)
    assert.equal(log.isCheckpointDue, false, 'zeros do not count')
    write(1, WAL_BYTES / 2)
    assert.equal(log.isCheckpointDue, true)
    log.checkpoint()
    assert.equal(log.isCheckpointDue, false)
    const past = connect(file, { readOnly: true })
    past.exec('BEGIN')
    past.prepare('SELECT count(*) FROM log').get()
    write(1, WAL_BYTES / 2)
    assert.equal(log.isCheckpointDue, true)
    log.checkpoint()
    write(10)
    assert.equal(log.isCheckpointDue, false, 'a reader needs an old revision')
    write(1, WAL_BYTES / 2)
    assert.equal(log.isCheckpointDue, true)
    past.close()
    log.checkpoint()
    write(1)
    assert.equal(log.isCheckpointDue, false)
    assert.equal(numberOf(db, 'PRAGMA synchronous'), 2)
  })
})
