import assert from 'node:assert/strict'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { after, before, beforeEach, describe, it } from 'node:test'

import { createSeededRandom } from '#lib/random.ts'

import { encodeChanges } from './change-bytes.ts'
import { ALL_KEYS, HistoryFile } from './history-file.ts'
import type { RecordedChange } from './recorded-change.ts'

const HOUR_MS = 3_600_000
const NO_LIMITS = { maxAgeMs: 1000 * HOUR_MS, maxBytes: 2 ** 40 }
const START_MS = Date.UTC(2026, 0, 1)
const SMALL = { looseBytes: 2000, blockBytes: 500 }

/** A store that keeps everything, and hands each of its commits to a history file. */
class Model {
  readonly #random = createSeededRandom(Number(process.env['PROPERTY_SEED'] ?? 11))
  readonly #now = new Map<string, string>()
  /** By revision. */
  readonly states: ReadonlyMap<string, string>[] = [new Map()]
  readonly changes: RecordedChange[] = []
  readonly file: HistoryFile
  readonly #secondsPerCommit: number
  nowMs = START_MS

  constructor(file: HistoryFile, secondsPerCommit = 1) {
    this.file = file
    this.#secondsPerCommit = secondsPerCommit
  }

  get revision(): number {
    return this.states.length - 1
  }

  /** Records the state of now. */
  record(gapReason?: string): void {
    this.file.beginState()
    const items = [...this.#now].sort(([a], [b]) => (a < b ? -1 : 1))
    for (const [key, text] of items) {
      const item = { key, createRevision: 1, modRevision: this.revision, value: Buffer.from(text), note: '' }
      this.file.addState(encodeChanges([{ type: 'state', ...item }]))
    }
    this.file.endState(this.revision, this.nowMs, gapReason)
  }

  /** Commits changes; `isRecorded`: and hands them over in one batch. */
  commit(count: number, limits: { maxAgeMs: number; maxBytes: number } = NO_LIMITS, isRecorded = true): void {
    const first = this.revision + 1
    const changes: RecordedChange[] = []
    const times: [number, number][] = []
    for (let at = 0; at < count; at++) {
      this.nowMs += this.#secondsPerCommit * 1000
      const modRevision = this.revision + 1
      times.push([modRevision, this.nowMs])
      changes.push(this.#change(modRevision))
      this.states.push(new Map(this.#now))
    }
    this.changes.push(...changes)
    if (!isRecorded) return
    const run = { first, last: this.revision, fromMs: times[0]?.[1] ?? 0, times, changes: encodeChanges(changes) }
    this.file.append(run)
    this.file.tidy(this.nowMs, limits)
  }

  #change(modRevision: number): RecordedChange {
    const key = `/registry/${this.#random.int(3)}/${this.#random.int(20)}`
    const isDelete = this.#now.has(key) && this.#random.float() < 0.2
    const text = `{"of":"${key}","at":${modRevision},"more":"${'x'.repeat(this.#random.int(80))}"}`
    if (isDelete) this.#now.delete(key)
    else this.#now.set(key, text)
    const value = Buffer.from(isDelete ? '' : text)
    return {
      type: isDelete ? 'delete' : 'put',
      key,
      createRevision: 1,
      modRevision,
      value,
      note: `note ${modRevision}`,
    }
  }
}

function shown(changes: readonly RecordedChange[]): Record<string, string> {
  return Object.fromEntries(changes.map(({ key, value }) => [key, value.toString()]))
}

function stateIn(states: Model['states'], revision: number, start = '', end = ALL_KEYS.end): Record<string, string> {
  const entries = [...(states[revision] ?? [])].filter(([key]) => key >= start && key < end)
  return Object.fromEntries(entries.sort(([a], [b]) => (a < b ? -1 : 1)))
}

describe('HistoryFile', () => {
  let folder: string
  let path: string
  let count = 0
  before(() => (folder = mkdtempSync(join(tmpdir(), 'history-'))))
  after(() => rmSync(folder, { recursive: true }))
  beforeEach(() => (path = join(folder, `${count++}.db`)))

  it('knows the state at each revision, and the changes between any two', () => {
    using file = opened()
    const model = new Model(file)
    model.record()
    for (let batch = 0; batch < 40; batch++) model.commit(10)
    for (let revision = 0; revision <= model.revision; revision++) {
      assert.deepEqual(shown(file.stateAt(ALL_KEYS, revision)), stateIn(model.states, revision))
      const range = { start: '/registry/1/', end: '/registry/10' }
      assert.deepEqual(shown(file.stateAt(range, revision)), stateIn(model.states, revision, range.start, range.end))
    }
    for (let from = 0; from < model.revision; from += 37)
      for (let through = from; through <= model.revision; through += 41)
        assert.deepEqual(
          allChanges(file, from, through),
          model.changes.filter(({ modRevision }) => modRevision > from && modRevision <= through),
        )
  })

  it('goes on after it was opened again', () => {
    let file = opened()
    const model = new Model(file)
    model.record()
    model.commit(95)
    file[Symbol.dispose]()
    file = opened()
    using _ = file
    assert.equal(file.summary().last, 95)
    assert.deepEqual(file.times().slice(-2), [
      [94, START_MS + 94_000],
      [95, START_MS + 95_000],
    ])
    assert.deepEqual(shown(file.stateAt(ALL_KEYS, 50)), stateIn(model.states, 50))
    assert.deepEqual(allChanges(file, 0, 95), model.changes)
  })

  it('names a gap, and knows what is before and after it', () => {
    using file = opened()
    const model = new Model(file)
    model.record()
    model.commit(30)
    model.commit(10, NO_LIMITS, false)
    model.record('the disk was full')
    model.commit(5)
    for (const revision of [0, 15, 30, 40, 45])
      assert.deepEqual(shown(file.stateAt(ALL_KEYS, revision)), stateIn(model.states, revision))
    for (const revision of [31, 39])
      assert.throws(() => file.stateAt(ALL_KEYS, revision), /has a gap .* the disk was full/)
    assert.deepEqual(
      file.summary().gaps.map(({ after, until, reason }) => ({ after, until, reason })),
      [{ after: 30, until: 40, reason: 'the disk was full' }],
    )
  })

  it('drops what is too old, and what is too much', () => {
    for (const limits of [
      { maxAgeMs: 4 * HOUR_MS, maxBytes: 2 ** 40 },
      { maxAgeMs: 1000 * HOUR_MS, maxBytes: 60_000 },
    ]) {
      path = join(folder, `${count++}.db`)
      using file = opened()
      const model = new Model(file, 60)
      model.record()
      for (let batch = 0; batch < 200; batch++) model.commit(10, limits)
      const { first = 0, firstMs = 0, bytes } = file.summary()
      assert.ok(first > 0, 'something was dropped')
      if (limits.maxBytes < 2 ** 40) assert.ok(bytes < limits.maxBytes * 1.5, `${bytes} bytes`)
      else assert.ok(model.nowMs - firstMs < limits.maxAgeMs * 1.5 && model.nowMs - firstMs >= limits.maxAgeMs)
      assert.throws(() => file.stateAt(ALL_KEYS, first - 1), /is not in the history/)
      for (let revision = first; revision <= model.revision; revision += 7)
        assert.deepEqual(shown(file.stateAt(ALL_KEYS, revision)), stateIn(model.states, revision))
    }
  })

  it('forgets without a trace', () => {
    const file = opened()
    const model = new Model(file)
    model.record()
    model.commit(200)
    const range = { start: '/registry/1/', end: '/registry/10' }
    const changes = model.changes.filter(({ key }) => key.startsWith('/registry/1/')).length
    assert.equal(file.forget(range, model.revision, { atMs: model.nowMs, by: 'jane' }), changes)
    model.record()
    assert.deepEqual(file.stateAt(range, 150), [])
    assert.deepEqual(shown(file.stateAt(range, 200)), stateIn(model.states, 200, range.start, range.end))
    assert.deepEqual(
      shown(file.stateAt({ start: '/registry/2/', end: ALL_KEYS.end }, 150)),
      stateIn(model.states, 150, '/registry/2/'),
    )
    file[Symbol.dispose]()
  })

  it('leaves no byte of what it forgot in its file', () => {
    const file = opened()
    file.beginState()
    file.endState(1, START_MS, undefined)
    const secret = Buffer.from(createSeededRandom(3).bytes(200))
    const change = {
      type: 'put',
      key: '/registry/a',
      createRevision: 2,
      modRevision: 2,
      value: secret,
      note: '',
    } as const
    file.append({ first: 2, last: 2, fromMs: START_MS, times: [], changes: encodeChanges([change]) })
    const isThere = (): boolean =>
      [path, `${path}-wal`].some((name) => readFileSync(name).includes(secret.subarray(100, 150)))
    assert.ok(isThere(), 'it was there')
    file.forget(ALL_KEYS, 2, { atMs: START_MS, by: 'jane' })
    assert.ok(!isThere())
    file[Symbol.dispose]()
  })

  it('notices damage, and reads what is not damaged', () => {
    const file = opened()
    const model = new Model(file)
    model.record()
    for (let batch = 0; batch < 10; batch++) model.commit(30)
    file[Symbol.dispose]()
    const db = new DatabaseSync(path)
    const [block] = db.prepare('SELECT rowid, changes FROM block ORDER BY segment DESC').all()
    const bytes = block?.['changes'] as Uint8Array
    bytes[20] = (bytes[20] ?? 0) ^ 0xff
    db.prepare('UPDATE block SET changes = ? WHERE rowid = ?').run(bytes, block?.['rowid'] as number)
    db.close()
    using again = opened()
    const damages: string[] = []
    for (let revision = 0; revision <= model.revision; revision++) {
      try {
        assert.deepEqual(shown(again.stateAt(ALL_KEYS, revision)), stateIn(model.states, revision))
      } catch (error) {
        damages.push((error as Error).message)
      }
    }
    assert.ok(damages.length > 0 && damages.length < model.revision)
    assert.match(damages[0] ?? '', /^The history is damaged in (block \d+ of segment \d+|the changes from revision)/)
  })

  it('refuses files of others', () => {
    writeFileSync(path, 'this is not a database, but it is long enough to be one'.repeat(100))
    assert.throws(opened, /not a database/)
  })

  function opened(): HistoryFile & Disposable {
    const file = new HistoryFile(path, SMALL)
    return Object.assign(file, { [Symbol.dispose]: () => file.close() })
  }
})

function allChanges(file: HistoryFile, from: number, through: number): RecordedChange[] {
  const all: RecordedChange[] = []
  for (let at = from; ;) {
    const found = file.changesAfter(ALL_KEYS, at, through)
    const last = found.at(-1)
    if (last === undefined) return all
    all.push(...found)
    at = last.modRevision
  }
}
