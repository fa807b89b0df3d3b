import assert from 'node:assert/strict'
import diagnostics from 'node:diagnostics_channel'
import { existsSync } from 'node:fs'
import { mkdtemp, readdir, rm, stat, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { after, before, describe, it, type TestContext } from 'node:test'
import type { Worker } from 'node:worker_threads'

import { createVirtualClock, type VirtualClock } from '#lib/clock.ts'
import { createSeededRandom } from '#lib/random.ts'

import { backendSuite } from './backend.suite.ts'
import { prefixEnd, StorageError, type Backend, type StorageErrorCode } from './backend.ts'
import { openSqliteBackend, type SqliteOptions } from './sqlite.ts'
import { restoreSqlite } from './sqlite/restore.ts'

const bytes = (text: string): Uint8Array => Buffer.from(text)
const ALL = { start: '', end: prefixEnd('') }

interface Opened {
  readonly backend: Backend
  readonly clock: VirtualClock
  readonly file: string
  readonly open: (file?: string) => Promise<Backend>
}

async function openStore(t: TestContext, options: Partial<SqliteOptions> = {}): Promise<Opened> {
  const folder = await mkdtemp(join(tmpdir(), 'sqlite-test-'))
  const file = join(folder, 'store.db')
  const clock = createVirtualClock()
  const stores: Backend[] = []
  const open = async (path = file): Promise<Backend> => {
    const store = await openSqliteBackend(path, { clock, random: createSeededRandom(1), ballastBytes: 0, ...options })
    stores.push(store)
    return store
  }
  t.after(async () => {
    for (const store of stores) await store.close()
    await rm(folder, { recursive: true })
  })
  return { backend: await open(), clock, file, open }
}

function failsWith(code: StorageErrorCode, message = /./): (error: unknown) => boolean {
  return (error) => {
    assert.ok(error instanceof StorageError, String(error))
    assert.equal(error.code, code, error.message)
    assert.match(error.message, message)
    return true
  }
}

async function texts(backend: Backend): Promise<string[]> {
  const { items } = await backend.range(ALL)
  return items.map((item) => `${item.key}=${Buffer.from(item.value).toString()}`)
}

/** Ticks the store's clock until `isDone`: the threads work in real time. */
async function tickUntil(clock: VirtualClock, isDone: () => Promise<boolean> | boolean): Promise<void> {
  for (let n = 0; n < 20_000; n++) {
    if (await isDone()) return
    await clock.advance(1000)
  }
  assert.fail('it never happened')
}

function countRows(file: string): number {
  const db = new DatabaseSync(file, { readOnly: true })
  try {
    return Number(db.prepare('SELECT count(*) AS n FROM log').get()?.['n'])
  } finally {
    db.close()
  }
}

describe('storage backend on SQLite', () => {
  let folder: string
  let shared: Backend
  const clock = createVirtualClock()
  const open = (file: string): Promise<Backend> =>
    openSqliteBackend(file, { clock, random: createSeededRandom(1), ballastBytes: 0 })
  before(async () => {
    folder = await mkdtemp(join(tmpdir(), 'sqlite-test-'))
    shared = await open(join(folder, 'shared.db'))
  })
  after(async () => {
    await shared.close()
    await rm(folder, { recursive: true })
  })

  backendSuite('sqlite', async (_, { isOwn }) => ({
    backend: isOwn ? await open(join(folder, 'own.db')) : shared,
    ...(!isOwn && { release: () => Promise.resolve() }),
    pass: (ms) => clock.advance(ms),
    ttlMs: 10_000,
    progressMs: 5000,
    openSnapshot: open,
  }))
})

describe('SQLite backend', () => {
  it('keeps the times of commits over a restart, as long as the commits', async (t) => {
    const { backend, clock, open } = await openStore(t)
    const revisions: number[] = []
    for (const value of ['1', '2', '3']) {
      revisions.push((await backend.commit([{ key: 'a', value: bytes(value) }])).revision)
      await clock.advance(10_000)
    }
    const [first = 0, second = 0, third = 0] = revisions
    const timesMs = revisions.map((revision) => backend.timeOf(revision))
    await backend.compact(second)
    await backend.close()
    const again = await open()
    assert.deepEqual(
      [first, second, third].map((revision) => again.timeOf(revision)),
      [undefined, ...timesMs.slice(1)],
    )
    assert.equal(again.revisionAt(clock.now()), third)
  })

  it('has the same state, revision, history and leases after a restart', async (t) => {
    const { backend, clock, file, open } = await openStore(t)
    const lease = await backend.grantLease(60_000)
    const first = await backend.commit([{ key: 'a', value: bytes('1') }])
    await backend.commit([{ key: 'b', value: bytes('1'), lease }])
    await backend.commit([{ key: 'a', value: bytes('2') }])
    const last = await backend.commit([{ key: 'c', value: bytes('gone') }])
    await backend.commit([{ key: 'c', value: null }])
    await backend.close()
    assert.deepEqual([existsSync(`${file}-wal`), existsSync(`${file}-shm`)], [false, false], 'one file when closed')
    const again = await open()
    assert.equal(await again.currentRevision(), last.revision + 1)
    assert.deepEqual(await texts(again), ['a=2', 'b=1'])
    const old = await again.range({ ...ALL, revision: first.revision })
    assert.deepEqual(
      old.items.map((item) => item.key),
      ['a'],
    )
    const stop = new AbortController()
    for await (const { events } of again.watch({ ...ALL, from: 1, signal: stop.signal })) {
      assert.deepEqual(
        events.map((event) => `${event.type} ${event.key}`),
        ['put a', 'put b', 'put a', 'put c', 'delete c'],
      )
      stop.abort()
    }
    await clock.advance(59_000)
    await again.keepAliveLease(lease)
    await clock.advance(61_000)
    await tickUntil(clock, async () => (await again.range({ start: 'b' })).count === 0)
    await assert.rejects(again.keepAliveLease(lease), failsWith('lease-not-found'))
  })

  it('creates files that other users cannot read', async (t) => {
    const { backend, file } = await openStore(t, { ballastBytes: 4096 })
    await backend.commit([{ key: 'a', value: bytes('1') }])
    await backend.snapshot(`${file}.snapshot`)
    const names = (await readdir(dirname(file))).toSorted()
    const sides = ['', '-shm', '-wal', '.ballast', '.lock', '.snapshot']
    assert.deepEqual(
      names,
      sides.map((side) => `store.db${side}`),
    )
    for (const name of names) assert.equal((await stat(join(dirname(file), name))).mode & 0o077, 0, name)
  })

  it('has one owner at a time, and names that owner in its error', async (t) => {
    const { backend, open } = await openStore(t)
    await assert.rejects(open(), failsWith('unavailable', new RegExp(`process ${process.pid}`)))
    await backend.commit([{ key: 'a', value: bytes('1') }])
    await backend.close()
    assert.deepEqual(await texts(await open()), ['a=1'])
  })

  it('rejects a file of another program', async (t) => {
    const { file, open } = await openStore(t)
    await writeFile(`${file}.text`, 'This is not a database. '.repeat(1000))
    await assert.rejects(open(`${file}.text`), failsWith('corrupt'))
    new DatabaseSync(`${file}.foreign`).exec('CREATE TABLE t (a)')
    await assert.rejects(open(`${file}.foreign`), failsWith('corrupt', /not a hyperkube database/))
    await assert.rejects(open(join(file, 'below', 'a-file')), failsWith('unavailable'))
  })

  it('rejects a commit that is too large, and accepts the next', async (t) => {
    const { backend } = await openStore(t)
    await assert.rejects(backend.commit([{ key: 'a', value: new Uint8Array(17 << 20) }]), failsWith('too-large'))
    const many = Array.from({ length: 1025 }, (_, n) => ({ key: `k${n}`, value: bytes('x') }))
    await assert.rejects(backend.commit(many), failsWith('too-large'))
    assert.equal((await backend.commit(many.slice(1))).ok, true)
    assert.equal((await backend.range({ ...ALL, countOnly: true })).count, 1024)
  })

  it('deletes all keys of a lease even if they do not fit into one commit', async (t) => {
    const { backend } = await openStore(t)
    const lease = await backend.grantLease(1000)
    for (let n = 0; n < 3; n++) {
      await backend.commit(Array.from({ length: 1000 }, (_, at) => ({ key: `k${n}-${at}`, value: bytes('x'), lease })))
    }
    const before = await backend.currentRevision()
    await backend.revokeLease(lease)
    assert.equal((await backend.range(ALL)).count, 0)
    assert.equal(await backend.currentRevision(), before + 3)
  })

  it('keeps the history window, compacts older history, and frees disk space', async (t) => {
    const { backend, clock, file } = await openStore(t, { historyMs: 60_000 })
    const value = new Uint8Array(40_000).fill(7)
    for (let n = 0; n < 200; n++) await backend.commit([{ key: `k${n % 10}`, value }])
    const { revision } = await backend.commit([{ key: 'last', value }])
    await clock.advance(50_000)
    await backend.range({ ...ALL, revision: 1 })
    assert.equal(countRows(file), 201)
    const before = (await backend.health()).sizeInUseBytes
    await clock.advance(30_000)
    await tickUntil(clock, async () => (await backend.health()).compactedRevision === revision)
    await assert.rejects(backend.range({ ...ALL, revision: revision - 1 }), failsWith('compacted'))
    await tickUntil(clock, () => countRows(file) < 13)
    await tickUntil(clock, async () => (await backend.health()).sizeInUseBytes < before / 5)
    await tickUntil(clock, async () => {
      const { sizeBytes, sizeInUseBytes } = await backend.health()
      return sizeBytes - (await stat(`${file}-wal`)).size < sizeInUseBytes + (5 << 20)
    })
    assert.equal((await backend.range(ALL)).count, 11)
    assert.equal((await backend.range({ ...ALL, revision })).count, 11)
  })

  it('reads and deletes on a full disk, reports that, and recovers automatically', async (t) => {
    const { backend, clock } = await openStore(t, { quotaBytes: 1 << 20 })
    const value = new Uint8Array(50_000)
    let stored = 0
    const fill = async (): Promise<void> => {
      for (; stored < 100; stored++) await backend.commit([{ key: `k${stored}`, value }])
    }
    await assert.rejects(fill(), failsWith('no-space'))
    assert.ok(stored > 10)
    assert.equal((await backend.range(ALL)).count, stored)
    const health = await backend.health()
    assert.equal(health.ok, false)
    assert.match(health.message, /limit/)
    const [deleted, refused] = await Promise.allSettled([
      backend.commit([{ key: 'k0', value: null }]),
      backend.commit([{ key: 'new', value: bytes('x') }]),
    ])
    assert.deepEqual([deleted.status, refused.status], ['fulfilled', 'rejected'])
    for (let n = 1; n < stored; n++) await backend.commit([{ key: `k${n}`, value: null }])
    await backend.compact(await backend.currentRevision())
    await tickUntil(clock, async () => (await backend.health()).ok)
    assert.equal((await backend.commit([{ key: 'new', value: bytes('x') }])).ok, true)
    assert.deepEqual(await texts(backend), ['new=x'])
  })

  /** The threads that are started during `work`. */
  async function threadsOf<T>(work: () => Promise<T>): Promise<[T, Worker[]]> {
    const workers: Worker[] = []
    const note = (message: unknown): void => void workers.push((message as { worker: Worker }).worker)
    diagnostics.subscribe('worker_threads', note)
    try {
      return [await work(), workers]
    } finally {
      diagnostics.unsubscribe('worker_threads', note)
    }
  }

  const large = bytes('x'.repeat(1 << 20))

  it('has one thread while it is small, and a second one for reads once it has grown', async (t) => {
    const [{ backend, open }, [, none]] = await threadsOf(() => openStore(t))
    assert.equal(none, undefined)
    const [, [reader]] = await threadsOf(async () => {
      for (let n = 0; n < 12; n++) await backend.commit([{ key: `k${n}`, value: large }])
      assert.equal((await backend.range(ALL)).count, 12)
    })
    assert.ok(reader)
    assert.equal((await backend.range(ALL)).count, 12)
    await backend.close()
    const [again, both] = await threadsOf(() => open())
    assert.equal(both.length, 2)
    assert.equal((await again.range(ALL)).count, 12)
  })

  for (const role of ['writer', 'reader']) {
    it(`reports that it is unavailable if its ${role} thread ends, and can be opened again`, async (t) => {
      const { backend: first, open } = await openStore(t)
      for (let n = 0; n < 5; n++) await first.commit([{ key: `k${n}`, value: large }])
      await first.close()
      const [backend, workers] = await threadsOf(() => open())
      await backend.commit([{ key: 'a', value: bytes('1') }])
      const watch = backend.watch({ ...ALL, signal: new AbortController().signal })[Symbol.asyncIterator]()
      await watch.next()
      const waiting = watch.next()
      const lost = assert.rejects(waiting, failsWith('unavailable'))
      await workers[role === 'writer' ? 0 : 1]!.terminate()
      await lost
      await assert.rejects(backend.commit([{ key: 'b', value: bytes('1') }]), failsWith('unavailable', /died/))
      await assert.rejects(backend.range(ALL), failsWith('unavailable', /died/))
      await assert.rejects(backend.currentRevision(), failsWith('unavailable', /died/))
      const health = await backend.health()
      assert.deepEqual([health.ok, health.message.includes(`${role} thread`)], [false, true])
      await backend.close()
      assert.equal((await (await open()).range(ALL)).count, 6)
    })
  }

  it('reports its health without waiting for the reader thread, unless sizes are requested', async (t) => {
    const { backend } = await openStore(t)
    await backend.commit([{ key: 'k', value: new Uint8Array(1) }])
    const answers: string[] = []
    await Promise.all([
      backend.health().then(({ sizeBytes }) => answers.push(sizeBytes > 0 ? 'size' : 'nothing')),
      backend.health(undefined, { withoutSizes: true }).then(({ ok }) => answers.push(ok ? 'well' : 'ill')),
    ])
    assert.deepEqual(answers, ['well', 'size'])
  })

  it('restores a snapshot with higher revisions, and makes old watchers start over', async (t) => {
    const { backend, file, open } = await openStore(t)
    await backend.commit([{ key: 'a', value: bytes('1') }])
    await backend.commit([{ key: 'a', value: bytes('2') }])
    const snapshot = `${file}.snapshot`
    const revision = await backend.snapshot(snapshot)
    const later = await backend.commit([{ key: 'a', value: bytes('lost') }])
    const target = `${file}.restored`
    assert.equal(restoreSqlite(snapshot, target), revision + 1_000_000)
    assert.equal((await stat(target)).mode & 0o077, 0)
    assert.throws(() => restoreSqlite(snapshot, target), failsWith('unavailable', /already exists/))
    const restored = await open(target)
    assert.equal(await restored.currentRevision(), revision + 1_000_000)
    assert.deepEqual(await texts(restored), ['a=2'])
    const { signal } = new AbortController()
    const watch = restored.watch({ ...ALL, from: later.revision + 1, signal })[Symbol.asyncIterator]()
    await assert.rejects(watch.next(), failsWith('compacted'))
    await assert.rejects(restored.range({ ...ALL, revision }), failsWith('compacted'))
    const [item] = (await restored.range({ start: 'a' })).items
    const next = await restored.commit([{ key: 'a', value: bytes('3'), expected: item!.modRevision }])
    assert.equal(next.revision, revision + 1_000_001)
  })
})
