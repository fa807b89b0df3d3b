/**
 * Reads from the SQLite database over a second connection, which never blocks the writer. Each answer comes from one
 * read transaction, so items, count and revision are consistent.
 */
import { chmodSync, closeSync, existsSync, openSync, renameSync, rmSync, statSync } from 'node:fs'
import { dirname } from 'node:path'
import { backup, type DatabaseSync, type StatementSync } from 'node:sqlite'

import { StorageError, type Revision } from '../backend.ts'
import { compactedError, futureRevisionError } from '../event-feed.ts'
import { checkRows } from './check.ts'
import { flushFile, flushFolder } from './durable-file.ts'
import {
  checkedRow,
  connect,
  damaged,
  firstId,
  isDelete,
  latestRevision,
  numberOf,
  readMeta,
  revisionOf,
  ROW,
  writeMeta,
  type Row,
} from './layout.ts'
import {
  joinBytes,
  type ForkCall,
  type HistoryCall,
  type Part,
  type RangeCall,
  type ReaderMethods,
} from './messages.ts'

/** The approximate maximum of a part, so that the main thread is never busy with one for long. */
const PART_ITEMS = 512
const PART_BYTES = 1 << 20
/** Rows of history per batch of a watch, and bytes of values in it. */
const HISTORY_ROWS = 4096
const HISTORY_BYTES = 4 << 20
/** Rows verified at once; some ten milliseconds. */
const VERIFY_ROWS = 1000

/** Each pass has less work than the one before, unless a reader uses an old snapshot: then no pass makes progress. */
const CHECKPOINT_PASSES = 3
const CHECKPOINT_REST_FRAMES = 64

const EMPTY = new Uint8Array()

/** Hands a part of the answer to the caller. */
export type SendPart = (part: Part) => void

export class Reader implements ReaderMethods {
  readonly #db: DatabaseSync
  readonly #file: string
  readonly #statements: ReturnType<typeof prepareStatements>
  /** The receiver of parts of the running call; set by the thread before each call. */
  sendPart: SendPart = () => undefined

  constructor(file: string) {
    this.#file = file
    this.#db = connect(file)
    this.#db.exec('PRAGMA query_only = ON')
    this.#statements = prepareStatements(this.#db)
  }

  close(): void {
    this.#db.close()
  }

  range(call: RangeCall): { more: boolean; count: number; revision: Revision } {
    return this.#read((latest) => {
      const revision = call.revision ?? latest
      if (revision > latest) throw futureRevisionError(revision, latest)
      this.#checkKept(revision)
      const beyond = firstId(revision + 1)
      if (call.countOnly) return { more: false, count: this.#count(call, beyond), revision }
      const sent = this.#sendItems(call, beyond)
      const isAll = call.limit === 0 || sent < call.limit
      const count = isAll ? sent : this.#count(call, beyond)
      return { more: sent < count, count, revision }
    })
  }

  history({ start, end, from, through }: HistoryCall): { revision: Revision } {
    return this.#read(() => {
      this.#checkKept(from)
      const [first, beyond] = [firstId(from), firstId(through + 1)]
      const cut = this.#statements.cut.get(first, beyond, HISTORY_ROWS) as unknown as [number] | undefined
      const reach = cut === undefined ? through : revisionOf(cut[0])
      return { revision: this.#sendEvents({ start, end, from, through: reach }) }
    })
  }

  sizes(): { sizeBytes: number; sizeInUseBytes: number } {
    return this.#read(() => {
      const pageBytes = numberOf(this.#db, 'PRAGMA page_size')
      const pages = numberOf(this.#db, 'PRAGMA page_count')
      const wal = statSync(`${this.#file}-wal`, { throwIfNoEntry: false })?.size ?? 0
      const free = numberOf(this.#db, 'PRAGMA freelist_count')
      return { sizeBytes: pages * pageBytes + wal, sizeInUseBytes: (pages - free) * pageBytes }
    })
  }

  snapshot(target: string): Promise<Revision> {
    return this.#copy(target, latestRevision)
  }

  async fork({ target, revision }: ForkCall): Promise<Revision> {
    if (existsSync(target)) throw new StorageError('unavailable', `"${target}" already exists; name another file`)
    return this.#copy(target, (db) => (revision === undefined ? latestRevision(db) : goBack(db, revision)))
  }

  /** A complete, durable copy; `finish` runs last. */
  async #copy(target: string, finish: (db: DatabaseSync) => Revision): Promise<Revision> {
    const part = `${target}.part`
    for (const file of [part, `${part}-wal`, `${part}-shm`, `${part}-journal`]) rmSync(file, { force: true })
    closeSync(openSync(part, 'wx', 0o600))
    // A separate connection, as the copy is made on another thread. All pages in one step: in several, every commit
    const source = connect(this.#file, { readOnly: true })
    try {
      await backup(source, part, { rate: 2 ** 31 - 1 })
      const revision = finishCopy(part, finish)
      chmodSync(part, 0o600)
      renameSync(part, target)
      flushFolder(dirname(target))
      return revision
    } catch (error) {
      rmSync(part, { force: true })
      throw error
    } finally {
      source.close()
    }
  }

  checkpoint(): void {
    // Data that arrives during one pass is for the next, which is shorter: little is left for the writer.
    let leftFrames = Infinity
    for (let pass = 0; pass < CHECKPOINT_PASSES && leftFrames > CHECKPOINT_REST_FRAMES; pass++) {
      this.#db.exec('PRAGMA wal_checkpoint(PASSIVE)')
      const [, written, copied] = this.#statements.frames.get() as unknown as [number, number, number]
      leftFrames = written - copied
    }
  }

  verify(fromId: number): number {
    return this.#read(() => checkRows(this.#db, fromId, VERIFY_ROWS))
  }

  /** Runs `task` in one read transaction, with the latest revision it can see. */
  #read<T>(task: (latest: Revision) => T): T {
    this.#db.exec('BEGIN')
    try {
      return task(latestRevision(this.#db))
    } finally {
      if (this.#db.isTransaction) this.#db.exec('ROLLBACK')
    }
  }

  #checkKept(revision: Revision): void {
    const compacted = readMeta(this.#db, 'compacted')
    if (revision < compacted) throw compactedError(revision, compacted)
  }

  #count({ start, end }: RangeCall, beyond: number): number {
    return (this.#statements.count.get(start, end, beyond) as unknown as [number])[0]
  }

  /** Sends up to the limit of what was current before the id `beyond`; returns how many. */
  #sendItems({ start, end, limit, keysOnly }: RangeCall, beyond: number): number {
    const rows = this.#statements.items.iterate(start, end, beyond)
    const parts = new Parts(this.sendPart)
    let sent = 0
    for (const columns of rows as Iterable<unknown> as Iterable<unknown[]>) {
      if (columns[0] === null) throw damaged('index "log_key"', columns[7], columns[8])
      const [id, key, , created, lease, , stored] = checkedRow(columns as never)
      const value = keysOnly ? EMPTY : (stored ?? EMPTY)
      if (key !== columns[7]) throw damaged('index "log_key"', columns[7], id)
      if (isDelete(id)) continue
      parts.add([key, value, created, revisionOf(id), lease])
      if (++sent === limit) break
    }
    parts.flush()
    return sent
  }

  /** Sends the events of whole revisions and stops at the byte limit; returns the last covered revision. */
  #sendEvents({ start, end, from, through }: HistoryCall): Revision {
    const rows = this.#statements.events.iterate(firstId(from), firstId(through + 1), start, end)
    const parts = new Parts(this.sendPart)
    let [bytes, last] = [0, from]
    for (const columns of rows as Iterable<unknown> as Iterable<unknown[]>) {
      const row = checkedRow(columns.slice(0, 7) as never)
      const revision = revisionOf(row[0])
      if (bytes > HISTORY_BYTES && revision > last) {
        parts.flush()
        return last
      }
      last = revision
      const flat = flatEvent(row, columns.slice(7))
      bytes += parts.add(flat)
    }
    parts.flush()
    return through
  }
}

function prepareStatements(db: DatabaseSync): Record<'items' | 'count' | 'events' | 'cut' | 'frames', StatementSync> {
  const range = 'FROM log INDEXED BY log_key WHERE key >= ? AND key < ? AND id < ? GROUP BY key'
  const past = ROW.replaceAll('log.', 'past.')
  return {
    // Ordered inside: outside, SQLite would sort the whole range before the first row. It joins row by row.
    items: db.prepare(
      `SELECT ${ROW}, pick.key, pick.id FROM (SELECT key, max(id) AS id ${range} ORDER BY key) AS pick
       LEFT JOIN log ON log.id = pick.id`,
    ),
    count: db.prepare(`SELECT count(*) FROM (SELECT 1 ${range} HAVING max(id) & 1 = 0)`),
    events: db.prepare(
      `SELECT ${ROW}, ${past} FROM log LEFT JOIN log AS past ON past.id = log.prev
       WHERE log.id >= ? AND log.id < ? AND log.key >= ? AND log.key < ? ORDER BY log.id`,
    ),
    cut: db.prepare('SELECT id FROM log WHERE id >= ? AND id < ? ORDER BY id LIMIT 1 OFFSET ?'),
    frames: db.prepare('PRAGMA wal_checkpoint(NOOP)'),
  }
}

/** Five slots of the change, then four of what was before: revision 0 when there was nothing. */
function flatEvent(row: Row, pastColumns: readonly unknown[]): unknown[] {
  const [id, key, prev, created, lease, , value] = row
  const head = [key, isDelete(id) ? null : (value ?? EMPTY), created, revisionOf(id), lease]
  if (prev === 0) return [...head, 0, 0, 0, null]
  if (pastColumns[0] === null) throw damaged(`table "log", row ${prev}`, key, prev)
  const past = checkedRow(pastColumns as never)
  return [...head, revisionOf(past[0]), past[3], past[4], past[6] ?? EMPTY]
}

/** Gathers flat entries and sends them in parts of a bounded size. */
class Parts {
  readonly #send: SendPart
  #flat: unknown[] = []
  #values: Uint8Array[] = []
  #items = 0
  #bytes = 0

  constructor(send: SendPart) {
    this.#send = send
  }

  /** Returns how many bytes of values there are in the entry. */
  add(entry: readonly unknown[]): number {
    const before = this.#bytes
    for (const slot of entry) {
      if (!(slot instanceof Uint8Array)) this.#flat.push(slot)
      else {
        this.#flat.push(slot.length)
        this.#values.push(slot)
        this.#bytes += slot.length
      }
    }
    const added = this.#bytes - before
    if (++this.#items >= PART_ITEMS || this.#bytes >= PART_BYTES) this.flush()
    return added
  }

  flush(): void {
    if (this.#items === 0) return
    this.#send({ flat: this.#flat, values: joinBytes(this.#values, this.#bytes) })
    this.#flat = []
    this.#values = []
    this.#items = 0
    this.#bytes = 0
  }
}

/** Makes the copy one plain, whole, durable file. */
function finishCopy(file: string, finish: (db: DatabaseSync) => Revision): Revision {
  const db = connect(file)
  try {
    const report = db.prepare('PRAGMA quick_check(1)').get() as unknown as [string]
    if (report[0] !== 'ok') throw new StorageError('corrupt', `The snapshot is damaged: ${report[0]}`)
    db.exec('PRAGMA journal_mode = DELETE')
    writeMeta(db, 'clean', 1)
    return finish(db)
  } finally {
    db.close()
    flushFile(file)
  }
}

/** Undoes everything after `revision`. */
function goBack(db: DatabaseSync, revision: Revision): Revision {
  const latest = latestRevision(db)
  if (revision > latest) throw futureRevisionError(revision, latest)
  const compacted = readMeta(db, 'compacted')
  if (revision < compacted) throw compactedError(revision, compacted)
  db.exec('BEGIN IMMEDIATE')
  db.prepare('DELETE FROM log WHERE id >= ?').run(firstId(revision + 1))
  db.prepare('DELETE FROM commit_time WHERE revision > ?').run(revision)
  writeMeta(db, 'base', revision)
  db.exec('COMMIT')
  return revision
}
