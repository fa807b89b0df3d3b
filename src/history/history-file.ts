/**
 * History file: the changes of a store, for longer than the store keeps them. One thread owns the file. Pure of time: the
 * caller passes what time it is.
 */
import type { DatabaseSync } from 'node:sqlite'

import { type Revision, StorageError } from '#storage/backend.ts'
import type { CommitTime } from '#storage/commit-times.ts'

import { decodeChanges } from './change-bytes.ts'
import { connect, numberOf, transaction } from './layout.ts'
import { decodeTimes, encodeTimes } from './packed-times.ts'
import { FAST_LEVEL, pack } from './packed.ts'
import { type Gap, HistoryGapError, isInRange, type KeyRange, type RecordedChange } from './recorded-change.ts'
import { type RetentionLimits, type SegmentSizes, segmentsToDrop, wantsWholeState } from './retention.ts'
import {
  boundariesOf,
  changesIn,
  dropSegment,
  keepInSegment,
  type Segment,
  segmentsOf,
  SegmentWriter,
  unpackBlock,
} from './segments.ts'

export const ALL_KEYS: KeyRange = { start: '', end: '\u{10ffff}' }

/** Changes that wait to be packed. More compress better, and take more memory while they are sorted. */
const LOOSE_BYTES = 4 << 20
const LOOSE_MS = 3_600_000
/** Before compression. Larger blocks take fewer bytes, and longer to read. */
const BLOCK_BYTES = 128 << 10

export interface Sizes {
  /** New changes are packed when they have so many bytes. */
  readonly looseBytes?: number
  readonly blockBytes?: number
}

export interface Run {
  readonly first: Revision
  readonly last: Revision
  /** The time of the first change. */
  readonly fromMs: number
  readonly times: readonly CommitTime[]
  /** In order of revision. */
  readonly changes: Buffer
}

export interface HistorySummary {
  /** The oldest revision whose state is known; undefined if nothing is recorded. */
  readonly first: Revision | undefined
  readonly firstMs: number | undefined
  /** The last recorded revision; 0 if there is none. */
  readonly last: Revision
  readonly bytes: number
  readonly gaps: readonly Gap[]
}

type RunRow = readonly [first: number, last: number, times: Uint8Array, changes: Uint8Array]

export class HistoryFile {
  readonly #db: DatabaseSync
  readonly #sizes: Required<Sizes>
  #segments: Segment[]
  /** The writer of a complete state that is still incomplete. */
  #state: SegmentWriter | undefined
  #looseBytes: number

  constructor(file: string, sizes: Sizes = {}) {
    this.#sizes = { looseBytes: LOOSE_BYTES, blockBytes: BLOCK_BYTES, ...sizes }
    this.#db = connect(file)
    this.#segments = segmentsOf(this.#db)
    this.#looseBytes = numberOf(this.#db, 'SELECT coalesce(sum(raw_bytes), 0) FROM run')
  }

  close(): void {
    this.#db.close()
  }

  /** The oldest revision whose state is known. */
  get first(): Revision | undefined {
    return this.#segments.find(({ isWhole }) => isWhole)?.last
  }

  summary(): HistorySummary {
    const whole = this.#segments.find(({ isWhole }) => isWhole)
    const pages = numberOf(this.#db, 'PRAGMA page_count') - numberOf(this.#db, 'PRAGMA freelist_count')
    return {
      first: this.first,
      firstMs: whole?.untilMs,
      last: Math.max(this.#segments.at(-1)?.last ?? 0, numberOf(this.#db, 'SELECT max(last) FROM run')),
      bytes: pages * numberOf(this.#db, 'PRAGMA page_size'),
      gaps: this.#gaps(),
    }
  }

  /** In order. */
  times(): CommitTime[] {
    const rows = this.#db
      .prepare('SELECT times FROM segment UNION ALL SELECT times FROM (SELECT times FROM run ORDER BY last)')
      .all() as unknown as readonly (readonly [Uint8Array])[]
    return rows.flatMap(([times]) => decodeTimes(Buffer.from(unpackBlock(times, 'the times of commits'))))
  }

  append({ first, last, fromMs, times, changes }: Run): void {
    this.#db
      .prepare('INSERT INTO run VALUES (?, ?, ?, ?, ?, ?)')
      .run(last, first, fromMs, changes.length, packTimes(times), pack(changes, FAST_LEVEL))
    this.#looseBytes += changes.length
  }

  /** `addState` and `endState` follow. */
  beginState(): void {
    this.dropState()
    this.#pack()
    this.#db.exec('BEGIN IMMEDIATE')
    this.#state = new SegmentWriter(this.#db, this.#sizes.blockBytes)
  }

  /** In order of key. */
  addState(changes: Buffer): void {
    for (const change of decodeChanges(changes)) this.#state?.add(change)
  }

  /** All changes up to the revision are known now, except for those in the gap. */
  endState(revision: Revision, atMs: number, gapReason: string | undefined): void {
    const before = this.#segments.at(-1)
    this.#state?.end(wholeAt(revision, atMs), packTimes([[revision, atMs]]))
    if (before !== undefined && gapReason !== undefined)
      this.#db
        .prepare('INSERT OR REPLACE INTO gap VALUES (?, ?, ?, ?, ?)')
        .run(before.last, revision, before.untilMs, atMs, gapReason)
    this.#db.exec('COMMIT')
    this.#state = undefined
    this.#segments = segmentsOf(this.#db)
  }

  /** Drops an incomplete state. */
  dropState(): void {
    if (this.#state !== undefined && this.#db.isTransaction) this.#db.exec('ROLLBACK')
    this.#state = undefined
  }

  /** Packs new changes when there are enough, and drops old ones. */
  tidy(nowMs: number, limits: RetentionLimits): void {
    const oldestMs = numberOf(this.#db, 'SELECT from_ms FROM run ORDER BY last LIMIT 1')
    if (this.#looseBytes < this.#sizes.looseBytes && (oldestMs === 0 || nowMs - oldestMs < LOOSE_MS)) return
    this.#pack()
    if (wantsWholeState(this.#content(), nowMs, limits)) this.#writeWholeState()
    this.#drop(segmentsToDrop(this.#content(), nowMs, limits))
  }

  /** The state of the keys of the range at the revision, in order of key. Throws `compacted` and `corrupt`. */
  stateAt(range: KeyRange, revision: Revision): RecordedChange[] {
    this.#checkKnown(revision)
    const state = new Map<string, RecordedChange>()
    const start = this.#segments.findLastIndex(({ isWhole, last }) => isWhole && last <= revision)
    const hold = (change: RecordedChange): void => {
      if (change.modRevision > revision) return
      if (change.type === 'delete') state.delete(change.key)
      else state.set(change.key, change)
    }
    for (const segment of this.#segments.slice(start))
      if (segment.first <= revision) for (const change of changesIn(this.#db, segment, range)) hold(change)
    for (const change of this.#looseChanges(range, 0, revision)) hold(change)
    return [...state.values()].sort((a, b) => (a.key < b.key ? -1 : 1))
  }

  /**
   * The changes after `from` up to `through` in order of revision, at least those of one segment or run with any; none if
   * there are no more.
   */
  changesAfter(range: KeyRange, from: Revision, through: Revision): RecordedChange[] {
    this.#checkKnown(from)
    const isWanted = ({ modRevision }: RecordedChange): boolean => modRevision > from && modRevision <= through
    for (const segment of this.#segments) {
      if (segment.isWhole || segment.last <= from || segment.first > through) continue
      const found = changesIn(this.#db, segment, range).filter(isWanted).toArray()
      if (found.length > 0) return found.sort((a, b) => a.modRevision - b.modRevision)
    }
    return this.#looseChanges(range, from, through).toArray()
  }

  /**
   * Deletes all changes of these keys up to the revision, without a trace in the file except for `by` and their number.
   * A complete state must follow, because the keys may still exist.
   */
  forget(range: KeyRange, through: Revision, { atMs, by }: { readonly atMs: number; readonly by: string }): number {
    this.#pack()
    const isKept = ({ modRevision }: RecordedChange): boolean => modRevision > through
    const count = transaction(this.#db, () => {
      const counts = this.#segments.map((segment) => keepInSegment(this.#db, segment, range, isKept))
      const sum = counts.reduce((total, dropped) => total + dropped, 0)
      this.#db.prepare('INSERT INTO forgotten VALUES (?, ?, ?)').run(atMs, by, sum)
      return sum
    })
    this.#reclaim()
    return count
  }

  #checkKnown(revision: Revision): void {
    const { first = Infinity, last, gaps } = this.summary()
    if (revision < first || revision > last)
      throw new StorageError('compacted', `revision ${revision} is not in the history`, { compactedRevision: first })
    const gap = gaps.find(({ after, until }) => revision > after && revision < until)
    if (gap !== undefined) throw new HistoryGapError(gap)
  }

  #gaps(): Gap[] {
    const rows = this.#db.prepare('SELECT after, until, after_ms, until_ms, reason FROM gap ORDER BY after').all()
    return (rows as unknown as readonly (readonly [number, number, number, number, string])[]).map(
      ([after, until, afterMs, untilMs, reason]) => ({ after, until, afterMs, untilMs, reason }),
    )
  }

  *#runs(): Generator<{
    readonly first: Revision
    readonly last: Revision
    readonly times: Buffer
    readonly changes: Buffer
  }> {
    const rows = this.#db.prepare('SELECT first, last, times, changes FROM run ORDER BY last').iterate()
    for (const [first, last, times, changes] of rows as Iterable<unknown> as Iterable<RunRow>) {
      const place = `the changes from revision ${first} to ${last}`
      yield { first, last, times: unpackBlock(times, place), changes: unpackBlock(changes, place) }
    }
  }

  *#looseChanges(range: KeyRange, from: Revision, through: Revision): Generator<RecordedChange> {
    for (const { first, last, changes } of this.#runs()) {
      if (last <= from || first > through) continue
      for (const change of decodeChanges(changes)) {
        const { key, modRevision } = change
        if (modRevision > from && modRevision <= through && isInRange(key, range)) yield change
      }
    }
  }

  #pack(): void {
    const runs = this.#runs().toArray()
    const [oldest, newest] = [runs[0], runs.at(-1)]
    if (oldest === undefined || newest === undefined) return
    const changes = runs.flatMap((run) => [...decodeChanges(run.changes)])
    changes.sort((a, b) => (a.key < b.key ? -1 : a.key > b.key ? 1 : a.modRevision - b.modRevision))
    const times = runs.flatMap((run) => decodeTimes(run.times))
    const [fromMs, untilMs] = [times[0]?.[1] ?? 0, times.at(-1)?.[1] ?? 0]
    transaction(this.#db, () => {
      const writer = new SegmentWriter(this.#db, this.#sizes.blockBytes)
      for (const change of changes) writer.add(change)
      writer.end({ first: oldest.first, last: newest.last, fromMs, untilMs, isWhole: false }, packTimes(times))
      this.#db.exec('DELETE FROM run')
    })
    this.#looseBytes = 0
    this.#segments = segmentsOf(this.#db)
  }

  /** In parts, so that it needs little memory. */
  #writeWholeState(): void {
    const newest = this.#segments.at(-1)
    const whole = this.#segments.findLast(({ isWhole }) => isWhole)
    if (newest === undefined || whole === undefined) return
    const { last, untilMs } = newest
    const starts = ['', ...boundariesOf(this.#db, whole).slice(1)]
    transaction(this.#db, () => {
      const writer = new SegmentWriter(this.#db, this.#sizes.blockBytes)
      for (const [at, start] of starts.entries()) {
        const range = { start, end: starts[at + 1] ?? ALL_KEYS.end }
        for (const change of this.stateAt(range, last)) writer.add({ ...change, type: 'state', note: '' })
      }
      writer.end(wholeAt(last, untilMs), packTimes([]))
    })
    this.#segments = segmentsOf(this.#db)
  }

  #content(): SegmentSizes {
    return { segments: this.#segments, bytes: this.summary().bytes }
  }

  #drop(segments: readonly Segment[]): void {
    const last = segments.at(-1)
    if (last === undefined) return
    transaction(this.#db, () => {
      for (const segment of segments) dropSegment(this.#db, segment)
      this.#db.prepare('DELETE FROM gap WHERE until <= ?').run(last.last)
    })
    this.#reclaim()
    this.#segments = segmentsOf(this.#db)
  }

  /** Gives the space of deleted rows back, and leaves no copy of them. */
  #reclaim(): void {
    this.#db.exec('PRAGMA incremental_vacuum')
    this.#db.exec('PRAGMA wal_checkpoint(TRUNCATE)')
  }
}

function wholeAt(revision: Revision, atMs: number): Omit<Segment, 'id' | 'rawBytes'> {
  return { first: revision, last: revision, fromMs: atMs, untilMs: atMs, isWhole: true }
}

function packTimes(times: readonly CommitTime[]): Buffer {
  return pack(encodeTimes(times), FAST_LEVEL)
}
