import assert from 'node:assert/strict'
import { existsSync, mkdirSync, mkdtempSync, rmdirSync, rmSync, statSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, beforeEach, describe, it } from 'node:test'

import { createVirtualClock, realClock, sleep } from '#lib/clock.ts'
import { createLog, type Logger } from '#lib/log/log.ts'
import { createSeededRandom } from '#lib/random.ts'
import type { Backend, StorageEvent } from '#storage/backend.ts'
import { createMemoryBackend } from '#storage/memory.ts'

import { Historian } from './historian.ts'
import { ALL_KEYS } from './history-file.ts'
import { LongHistory } from './long-history.ts'

const NO_LIMITS = { maxAgeMs: 1e12, maxBytes: 2 ** 40 }

describe('Historian', () => {
  const random = createSeededRandom(4)
  let folder: string
  let file: string
  let count = 0
  before(() => (folder = mkdtempSync(join(tmpdir(), 'historian-'))))
  after(() => rmSync(folder, { recursive: true }))
  beforeEach(() => (file = join(folder, `${count++}.db`)))

  function start(backend: Backend, options: Partial<ConstructorParameters<typeof Historian>[0]> = {}): Historian {
    return new Historian({
      backend,
      clock: realClock,
      random,
      log: silentLog(),
      contentOf: (_, value) => value,
      noteOf: (revision) => `note ${revision}`,
      settings: { file, limits: NO_LIMITS },
      ...options,
    })
  }

  async function put(backend: Backend, key: string, text: string | null): Promise<void> {
    const value = text === null ? null : Buffer.from(text)
    const result = await backend.commit([{ key, value }])
    assert.ok(result.ok)
  }

  it('shows states and changes that the store has dropped', async () => {
    const backend = memory()
    for (let at = 0; at < 30; at++) await put(backend, `/registry/${at % 7}`, at % 5 === 4 ? null : `value ${at}`)
    const whole = memory()
    const historian = start(backend)
    await recorded(historian, await backend.currentRevision())
    for (let at = 30; at < 90; at++) await put(backend, `/registry/${at % 7}`, at % 5 === 4 ? null : `value ${at}`)
    for (let at = 0; at < 90; at++) await put(whole, `/registry/${at % 7}`, at % 5 === 4 ? null : `value ${at}`)
    const last = await backend.currentRevision()
    await recorded(historian, last)
    const history = new LongHistory(backend, historian)
    await backend.compact(last - 10)
    const first = (await history.reach()).first
    assert.ok(first <= 30)
    for (let revision = first; revision <= last; revision++) {
      const state = await history.stateAt({ revision, clock: realClock, random })
      const { items } = await state.range({ ...ALL_KEYS, revision })
      assert.deepEqual(items, (await whole.range({ ...ALL_KEYS, revision })).items)
      assert.equal(history.timeOf(revision) === undefined, false)
      await state.close()
    }
    const signal = AbortSignal.timeout(20_000)
    for (const from of [first + 1, first + 15, last - 15, last - 5])
      assert.deepEqual(
        await eventsOf(history.changes({ ...ALL_KEYS, from, through: last, signal })),
        await eventsOf(whole.watch({ ...ALL_KEYS, from, through: last, signal })),
      )
    await historian.close()
  })

  it('knows the times of commits from before it started', async () => {
    const clock = createVirtualClock()
    const backend = createMemoryBackend({ clock, random, historyMs: Infinity })
    for (const text of ['1', '2', '3']) {
      await clock.advance(5000)
      await put(backend, '/registry/a', text)
    }
    const times = [1, 2, 3].map((revision) => backend.timeOf(revision))
    await clock.advance(60_000)
    const historian = start(backend, { clock })
    await until(async () => {
      await clock.advance(300)
      return historian.position >= 3
    })
    assert.deepEqual(
      [1, 2, 3].map((revision) => historian.times.timeOf(revision)),
      times,
    )
    await historian.close()
  })

  it('has the notes of changes', async () => {
    const backend = memory()
    await put(backend, '/registry/a', '1')
    const historian = start(backend)
    await recorded(historian, 1)
    await put(backend, '/registry/a', '2')
    await recorded(historian, 2)
    const [change] = await historian.changesAfter(ALL_KEYS, 1, 2)
    assert.equal(change?.note, 'note 2')
    await historian.close()
  })

  it('adds its notes to changes that the store still has', async () => {
    const backend = memory()
    const historian = start(backend)
    for (const text of ['1', '2', '3']) await put(backend, '/registry/a', text)
    await recorded(historian, 3)
    const signal = AbortSignal.timeout(20_000)
    const notes: (string | undefined)[] = []
    const history = new LongHistory(backend, historian)
    for await (const { events } of history.changes({ ...ALL_KEYS, from: 2, through: 3, signal }))
      notes.push(...events.map(({ note }) => note))
    assert.deepEqual(notes, ['note 2', 'note 3'])
    await historian.close()
  })

  it('lets only its user read its files', async () => {
    const backend = memory()
    const historian = start(backend)
    await put(backend, '/registry/a', '1')
    await recorded(historian, 1)
    for (const name of [file, `${file}-wal`]) assert.equal(statSync(name).mode & 0o777, 0o600, name)
    await historian.close()
  })

  it('goes on where it stopped, without a gap', async () => {
    const backend = memory()
    await put(backend, '/registry/a', '1')
    const first = start(backend)
    await recorded(first, 1)
    await first.close()
    await put(backend, '/registry/a', '2')
    await put(backend, '/registry/a', '3')
    const second = start(backend)
    await recorded(second, 3)
    const summary = await second.summary()
    assert.deepEqual({ first: summary.first, last: summary.last, gaps: summary.gaps }, { first: 0, last: 3, gaps: [] })
    assert.deepEqual(await values(second, 2), ['2'])
    await second.close()
  })

  it('records a gap if the store dropped what happened meanwhile', async () => {
    const backend = memory()
    await put(backend, '/registry/a', '1')
    const first = start(backend)
    await recorded(first, 1)
    await first.close()
    for (const text of ['2', '3', '4', '5']) await put(backend, '/registry/a', text)
    await backend.compact(4)
    const second = start(backend)
    await recorded(second, 5)
    const { gaps } = await second.summary()
    assert.deepEqual(
      gaps.map(({ after, until }) => [after, until]),
      [[1, 4]],
    )
    await assert.rejects(second.stateAt(ALL_KEYS, 3), { code: 'compacted' })
    assert.deepEqual(await values(second, 1), ['1'])
    const history = new LongHistory(backend, second)
    const signal = AbortSignal.timeout(20_000)
    await assert.rejects(eventsOf(history.changes({ ...ALL_KEYS, from: 2, through: 5, signal })), /has a gap/)
    await second.close()
  })

  it('begins a new history for another store, and keeps the old file', async () => {
    const backend = memory()
    for (const text of ['1', '2', '3']) await put(backend, '/registry/a', text)
    const first = start(backend)
    await recorded(first, 3)
    await first.close()
    const other = memory()
    await put(other, '/registry/b', 'other')
    const second = start(other)
    await recorded(second, 1)
    assert.deepEqual(await values(second, 1), ['other'])
    await second.close()
    assert.ok(existsSync(`${file}.old-1`))
  })

  it('tries again after a failure, and the store does not notice', async () => {
    const backend = memory()
    await put(backend, '/registry/a', '1')
    mkdirSync(file)
    const historian = start(backend)
    await until(() => historian.trouble !== '')
    await put(backend, '/registry/a', '2')
    await assert.rejects(historian.stateAt(ALL_KEYS, 1), { code: 'unavailable' })
    rmdirSync(file)
    await recorded(historian, 2)
    assert.equal(historian.trouble, '')
    await historian.close()
  })

  it('never records what its policy leaves out', async () => {
    const backend = memory()
    const contentOf = (key: string, value: Uint8Array): Uint8Array | undefined =>
      key.includes('secret') ? undefined : value
    await put(backend, '/registry/b', '0')
    const historian = start(backend, { contentOf })
    await recorded(historian, 1)
    await put(backend, '/registry/secret', 'canary')
    await put(backend, '/registry/a', '1')
    await recorded(historian, 3)
    await put(backend, '/registry/secret', null)
    await recorded(historian, 4)
    assert.deepEqual(await values(historian, 3), ['1', '0'])
    const history = new LongHistory(backend, historian)
    await backend.compact(4)
    const signal = AbortSignal.timeout(20_000)
    const events = await eventsOf(history.changes({ ...ALL_KEYS, from: 2, through: 4, signal }))
    assert.ok(!JSON.stringify(events).includes('secret'))
    await historian.close()
  })

  it('forgets, and still knows what exists', async () => {
    const backend = memory()
    await put(backend, '/registry/a', '1')
    const historian = start(backend)
    await recorded(historian, 1)
    for (const text of ['2', '3']) await put(backend, '/registry/a', text)
    await recorded(historian, 3)
    await historian.forget({ start: '/registry/a', end: '/registry/b' }, 3, 'jane')
    assert.deepEqual(await values(historian, 2), [])
    assert.deepEqual(await values(historian, 3), ['3'])
    await historian.close()
  })

  function memory(): Backend {
    return createMemoryBackend({ clock: realClock, random, historyMs: Infinity })
  }
})

async function values(historian: Historian, revision: number): Promise<string[]> {
  return (await historian.stateAt(ALL_KEYS, revision)).map(({ value }) => Buffer.from(value).toString())
}

/** Without notes, which a store does not have. */
async function eventsOf(
  batches: AsyncIterable<{ readonly events: readonly (StorageEvent & { readonly note?: string })[] }>,
): Promise<StorageEvent[]> {
  const all: StorageEvent[] = []
  for await (const { events } of batches) for (const { note: _, ...event } of events) all.push(event)
  return all
}

function recorded(historian: Historian, revision: number): Promise<void> {
  return until(() => historian.position >= revision)
}

async function until(isTrue: () => boolean | Promise<boolean>): Promise<void> {
  for (let tries = 0; !(await isTrue()); tries++) {
    assert.ok(tries < 2000, 'it did not come true')
    await sleep(realClock, 10)
  }
}

function silentLog(): Logger {
  return createLog({ clock: realClock, stream: { write: (_, done) => done() } }).logger
}
