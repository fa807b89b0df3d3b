/** Reads and writes the segments of a history file: changes in order of key, in compressed blocks. */
import type { DatabaseSync } from 'node:sqlite'

import { type Revision, StorageError } from '#storage/backend.ts'

import { changeBytes, decodeChanges, encodeChanges } from './change-bytes.ts'
import { pack, SMALL_LEVEL, unpack } from './packed.ts'
import { isInRange, type KeyRange, type RecordedChange } from './recorded-change.ts'

export interface Segment {
  readonly id: number
  /** A complete state has its revision in both. */
  readonly first: Revision
  readonly last: Revision
  readonly fromMs: number
  readonly untilMs: number
  readonly isWhole: boolean
  readonly rawBytes: number
}

type Row = readonly [number, number, number, number, number, number, number]

const COLUMNS = 'id, first, last, from_ms, until_ms, is_whole, raw_bytes'

/** In order of time. */
export function segmentsOf(db: DatabaseSync): Segment[] {
  const rows = db.prepare(`SELECT ${COLUMNS} FROM segment ORDER BY id`).all() as unknown as readonly Row[]
  return rows.map(([id, first, last, fromMs, untilMs, isWhole, rawBytes]) => {
    return { id, first, last, fromMs, untilMs, isWhole: isWhole === 1, rawBytes }
  })
}

/** Writes one segment, whose changes come in order of key and revision. */
export class SegmentWriter {
  readonly #db: DatabaseSync
  readonly #id: number
  readonly #blockBytes: number
  #pending: RecordedChange[] = []
  #pendingBytes = 0
  #blocks = 0
  #rawBytes = 0

  constructor(db: DatabaseSync, blockBytes: number) {
    this.#db = db
    this.#blockBytes = blockBytes
    const [last] = db.prepare('SELECT coalesce(max(id), 0) FROM segment').get() as unknown as readonly [number]
    this.#id = last + 1
  }

  add(change: RecordedChange): void {
    this.#pending.push(change)
    this.#pendingBytes += changeBytes(change)
    if (this.#pendingBytes >= this.#blockBytes) this.#flush()
  }

  end({ first, last, fromMs, untilMs, isWhole }: Omit<Segment, 'id' | 'rawBytes'>, times: Uint8Array): void {
    this.#flush()
    this.#db
      .prepare('INSERT INTO segment VALUES (?, ?, ?, ?, ?, ?, ?, ?)')
      .run(this.#id, first, last, fromMs, untilMs, isWhole ? 1 : 0, this.#rawBytes, times)
  }

  #flush(): void {
    const [first, last] = [this.#pending[0], this.#pending.at(-1)]
    if (first === undefined || last === undefined) return
    const bytes = encodeChanges(this.#pending)
    this.#db
      .prepare('INSERT INTO block VALUES (?, ?, ?, ?, ?)')
      .run(this.#id, this.#blocks++, first.key, last.key, pack(bytes, SMALL_LEVEL))
    this.#rawBytes += bytes.length
    this.#pending = []
    this.#pendingBytes = 0
  }
}

/** The changes in a segment of keys in the range, in order of key and revision. Throws `corrupt` for damaged blocks. */
export function* changesIn(db: DatabaseSync, { id }: Segment, range: KeyRange): Generator<RecordedChange> {
  const blocks = db
    .prepare('SELECT number, changes FROM block WHERE segment = ? AND first_key < ? AND last_key >= ? ORDER BY number')
    .iterate(id, range.end, range.start) as Iterable<unknown> as Iterable<readonly [number, Uint8Array]>
  for (const [number, changes] of blocks)
    for (const change of decodeChanges(unpackBlock(changes, `block ${number} of segment ${id}`)))
      if (isInRange(change.key, range)) yield change
}

/** Drops the other changes of keys in the range. Returns their number. */
export function keepInSegment(
  db: DatabaseSync,
  { id }: Segment,
  range: KeyRange,
  isKept: (change: RecordedChange) => boolean,
): number {
  const blocks = db
    .prepare('SELECT number, changes FROM block WHERE segment = ? AND first_key < ? AND last_key >= ?')
    .all(id, range.end, range.start) as unknown as readonly (readonly [number, Uint8Array])[]
  let count = 0
  for (const [number, bytes] of blocks) {
    const changes = [...decodeChanges(unpackBlock(bytes, `block ${number} of segment ${id}`))]
    const kept = changes.filter((change) => !isInRange(change.key, range) || isKept(change))
    if (kept.length === changes.length) continue
    count += changes.length - kept.length
    if (kept.length === 0) db.prepare('DELETE FROM block WHERE segment = ? AND number = ?').run(id, number)
    else
      db.prepare('UPDATE block SET changes = ? WHERE segment = ? AND number = ?').run(
        pack(encodeChanges(kept), SMALL_LEVEL),
        id,
        number,
      )
  }
  return count
}

export function unpackBlock(bytes: Uint8Array, place: string): Buffer {
  try {
    return unpack(bytes)
  } catch (cause) {
    throw new StorageError('corrupt', `The history is damaged in ${place}`, { cause })
  }
}

/** Keys at which the state can be read in parts of about one block. */
export function boundariesOf(db: DatabaseSync, { id }: Segment): string[] {
  const rows = db.prepare('SELECT first_key FROM block WHERE segment = ? ORDER BY number').all(id)
  return (rows as unknown as readonly (readonly [string])[]).map(([key]) => key)
}

export function dropSegment(db: DatabaseSync, { id }: Segment): void {
  db.prepare('DELETE FROM block WHERE segment = ?').run(id)
  db.prepare('DELETE FROM segment WHERE id = ?').run(id)
}
