/**
 * The contract of Backend as tests, which every implementation registers with `backendSuite`. Each test uses a separate
 * prefix, so that implementations may share an etcd.
 */
import assert from 'node:assert/strict'
import { mkdtemp, rm, stat } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, it, type TestContext } from 'node:test'

import * as fc from 'fast-check'

import {
  prefixEnd,
  StorageError,
  type Backend,
  type CommitResult,
  type KeyValue,
  type LeaseId,
  type RangeResult,
  type Revision,
  type StorageEvent,
  type StorageErrorCode,
  type WatchBatch,
  type Write,
} from './backend.ts'

export interface BackendUnderTest {
  readonly backend: Backend
  /** Disposes it after the test; absent: the suite closes the backend. */
  readonly release?: () => Promise<void>
  /** Advances the backend's time: moves its virtual clock, or sleeps. */
  readonly pass: (ms: number) => Promise<void>
  /** A time to live that the backend observes precisely enough: alive after half of it, gone after twice. */
  readonly ttlMs: number
  /** An idle watch receives progress within this time; absent: the backend cannot promise it (etcd before 3.4.31). */
  readonly progressMs?: number
  /** Opens a snapshot of this backend as another store, which the suite closes. Absent: external tools do it. */
  readonly openSnapshot?: (file: string) => Promise<Backend>
}

const TEST_TIMEOUT_MS = 60_000
const PROPERTY_SEED = 20_261_115

type Ok = Extract<CommitResult, { ok: true }>
type Refused = Extract<CommitResult, { ok: false }>

let prefixes = 0

/** The fixtures of each test. */
interface Bench extends BackendUnderTest {
  readonly prefix: string
  readonly end: string
  readonly key: (name: string | number) => string
  readonly put: (name: string | number, value?: string, extra?: Partial<Write>) => Promise<Ok>
  readonly remove: (name: string | number) => Promise<Ok>
  readonly list: (options?: { revision?: Revision; limit?: number; start?: string }) => Promise<RangeResult>
  /** A watch over the prefix from `from`, to be read step by step. */
  readonly follow: (from?: Revision) => Follower
}

interface Follower {
  readonly next: () => Promise<WatchBatch>
  /** Reads until `count` events have arrived. */
  readonly events: (count: number) => Promise<StorageEvent[]>
  readonly batches: readonly WatchBatch[]
  /** Ends the watch; resolves to its remaining events. */
  readonly stop: () => Promise<IteratorResult<WatchBatch, unknown>>
  readonly iterator: AsyncIterator<WatchBatch>
}

/** `create` is called for each test. A backend that is slow to open may be shared, except by a test that closes it. */
export type CreateBackend = (t: TestContext, options: { readonly isOwn: boolean }) => Promise<BackendUnderTest>

export function backendSuite(name: string, create: CreateBackend): void {
  const test: Test = (title, body, { isOwn = false } = {}) => {
    it(title, { timeout: TEST_TIMEOUT_MS }, async (t) => {
      const under = await create(t, { isOwn })
      const bench = createBench(under)
      try {
        await body(bench, t)
      } finally {
        await (under.release?.() ?? under.backend.close())
      }
    })
  }
  describe(`storage backend ${name}`, () => {
    describe('commits', () => commitTests(test))
    describe('ranges', () => rangeTests(test))
    describe('compaction', () => compactionTests(test))
    describe('watches', () => watchTests(test))
    describe('bounded watches', () => boundedWatchTests(test))
    describe('leases', () => leaseTests(test))
    describe('times of commits', () => timeTests(test))
    describe('forks', () => forkTests(test))
    describe('lifecycle', () => lifeTests(test))
    describe('compared with a model', () => propertyTests(test))
  })
}

type Test = (
  title: string,
  body: (bench: Bench, t: TestContext) => Promise<void>,
  options?: { readonly isOwn?: boolean },
) => void

function commitTests(test: Test): void {
  test('creates only absent keys, and otherwise returns the current value', async ({ backend, key }) => {
    const created = await ok(backend.commit([{ key: key('a'), value: bytes('1'), expected: 0 }]))
    assert.deepEqual(created.previous, [undefined])
    const refused = await failed(backend.commit([{ key: key('a'), value: bytes('2'), expected: 0 }]))
    assert.deepEqual(shape(refused.current[0]), [key('a'), '1', created.revision, created.revision, 0])
    assert.ok(refused.revision >= created.revision)
    assert.equal(await valueOf(backend, key('a')), '1')
  })

  test('updates a key only at the expected revision', async ({ backend, key, put }) => {
    const first = await put('a', '1')
    const second = await put('a', '2', { expected: first.revision })
    assert.deepEqual(shape(second.previous[0]), [key('a'), '1', first.revision, first.revision, 0])
    const stale = await failed(backend.commit([{ key: key('a'), value: bytes('3'), expected: first.revision }]))
    assert.deepEqual(shape(stale.current[0]), [key('a'), '2', first.revision, second.revision, 0])
    const absent = await failed(backend.commit([{ key: key('b'), value: bytes('3'), expected: first.revision }]))
    assert.deepEqual(absent.current, [undefined])
    const [item] = (await backend.range({ start: key('a') })).items
    assert.deepEqual(shape(item), [key('a'), '2', first.revision, second.revision, 0])
  })

  test('deletes a key only at the expected revision', async ({ backend, key, put }) => {
    const { revision } = await put('a', '1')
    const refused = await failed(backend.commit([{ key: key('a'), value: null, expected: revision - 1 }]))
    assert.deepEqual(shape(refused.current[0]), [key('a'), '1', revision, revision, 0])
    const gone = await ok(backend.commit([{ key: key('a'), value: null, expected: revision }]))
    assert.ok(gone.revision > revision)
    assert.deepEqual(shape(gone.previous[0]), [key('a'), '1', revision, revision, 0])
    assert.equal(await valueOf(backend, key('a')), undefined)
  })

  test('writes and deletes unconditionally without an expected revision', async ({ backend, key, put, remove }) => {
    await put('a', '1')
    await put('a', '2')
    assert.equal(await valueOf(backend, key('a')), '2')
    await remove('a')
    assert.equal(await valueOf(backend, key('a')), undefined)
  })

  test('uses no revision for a delete of an absent key, nor for an empty commit', async ({
    backend,
    key,
    put,
    remove,
  }) => {
    await put('a', '1')
    const before = await backend.currentRevision()
    assert.deepEqual((await remove('b')).previous, [undefined])
    const guarded = await ok(backend.commit([{ key: key('b'), value: null, expected: 0 }]))
    assert.deepEqual(guarded.previous, [undefined])
    await ok(backend.commit([]))
    assert.equal(await backend.currentRevision(), before)
  })

  test("rejects a commit that is larger than etcd accepts, with etcd's error text", async ({ backend, key, put }) => {
    const whole = 1.5 * 2 ** 20
    await put('a', 'x'.repeat(whole - 1000))
    const tooMuch = (size: number): Promise<StorageError> =>
      rejects(backend.commit([{ key: key('a'), value: new Uint8Array(size) }]), 'too-large')
    assert.equal((await tooMuch(whole)).message, 'etcdserver: request is too large')
    const unsent =
      /^rpc error: code = ResourceExhausted desc = trying to send message larger than max \(\d+ vs\. 2097152\)$/
    assert.match((await tooMuch(2 << 20)).message, unsent)
    assert.equal((await valueOf(backend, key('a')))?.length, whole - 1000)
  })

  test('recreates a deleted key', async ({ backend, key, put, remove }) => {
    await put('a', '1')
    await remove('a')
    const again = await put('a', '2', { expected: 0 })
    assert.deepEqual(again.previous, [undefined])
    const [item] = (await backend.range({ start: key('a') })).items
    assert.deepEqual(shape(item), [key('a'), '2', again.revision, again.revision, 0])
  })

  test('commits several keys at one revision, or none of them', async ({ backend, key, put, list }) => {
    const first = await put('a', '1')
    const all = await ok(
      backend.commit([
        { key: key('a'), value: bytes('2'), expected: first.revision },
        { key: key('b'), value: bytes('2'), expected: 0 },
        { key: key('c'), value: null },
      ]),
    )
    assert.deepEqual(
      (await list()).items.map((item) => [item.key, item.modRevision]),
      [
        [key('a'), all.revision],
        [key('b'), all.revision],
      ],
    )
    assert.deepEqual(all.previous.map(shape), [
      [key('a'), '1', first.revision, first.revision, 0],
      undefined,
      undefined,
    ])
    const none = await failed(
      backend.commit([
        { key: key('d'), value: bytes('3'), expected: 0 },
        { key: key('a'), value: bytes('3'), expected: first.revision },
        { key: key('b'), value: null },
      ]),
    )
    assert.deepEqual(none.current.map(shape), [
      undefined,
      [key('a'), '2', first.revision, all.revision, 0],
      [key('b'), '2', all.revision, all.revision, 0],
    ])
    assert.deepEqual((await list()).items.map(text), ['2', '2'])
    assert.equal(await backend.currentRevision(), all.revision)
  })

  test('rejects an empty key, and two writes of one key in a commit', async ({ backend, key }) => {
    await assert.rejects(backend.commit([{ key: '', value: bytes('1') }]), TypeError)
    await assert.rejects(
      backend.commit([
        { key: key('a'), value: bytes('1') },
        { key: key('a'), value: null },
      ]),
      TypeError,
    )
    assert.equal(await valueOf(backend, key('a')), undefined)
  })

  test('gives every commit a later revision than all acknowledged ones', async ({ backend, put }) => {
    let last = await backend.currentRevision()
    for (let n = 0; n < 20; n++) {
      const { revision } = await put(n % 3)
      assert.ok(revision > last)
      last = revision
      assert.equal(await backend.currentRevision(), revision)
    }
  })

  test('lets exactly one of many concurrent creates succeed, and failing guards do not affect other commits', async (bench) => {
    const { backend, key, list } = bench
    const racers = Array.from({ length: 40 }, (_, n) =>
      backend.commit([{ key: key('prize'), value: bytes(String(n)), expected: 0 }]),
    )
    const others = Array.from({ length: 40 }, (_, n) => bench.put(`own-${n}`))
    const results = await Promise.all(racers)
    const won = await Promise.all(others)
    const winners = results.flatMap((result, n) => (result.ok ? [n] : []))
    assert.equal(winners.length, 1)
    assert.equal(await valueOf(backend, key('prize')), String(winners[0]))
    for (const result of results) if (!result.ok) assert.equal(text(result.current[0]!), String(winners[0]))
    assert.equal((await list()).count, 41)
    const revisions = [...won, results[winners[0]!] as Ok].map(({ revision }) => revision)
    assert.equal(new Set(revisions).size, 41)
  })

  test('loses no update of concurrent read-modify-write cycles', async ({ backend, key, put }) => {
    await put('counter', '0')
    const add = async (): Promise<void> => {
      for (;;) {
        const [item] = (await backend.range({ start: key('counter') })).items
        const value = bytes(String(Number(text(item!)) + 1))
        if ((await backend.commit([{ key: key('counter'), value, expected: item!.modRevision }])).ok) return
      }
    }
    await Promise.all(Array.from({ length: 8 }, async () => [await add(), await add(), await add()]))
    assert.equal(await valueOf(backend, key('counter')), '24')
  })

  test('returns an acknowledged write in every later read', async ({ backend, key, put }) => {
    const loop = async (name: string): Promise<void> => {
      for (let n = 0; n < 15; n++) {
        const { revision } = await put(name, String(n))
        const seen = await backend.range({ start: key(name) })
        assert.equal(text(seen.items[0]!), String(n))
        assert.ok(seen.revision >= revision)
        assert.ok(
          (await backend.currentRevision()) >= seen.revision,
          'the revision a range has shown is not taken back',
        )
      }
    }
    await Promise.all(['a', 'b', 'c', 'd'].map(loop))
  })

  test('stores empty and 1.5-million-byte values, and all byte values', async ({ backend, key }) => {
    const big = new Uint8Array(1_500_000).map((_, at) => (at * 31) % 251)
    const all = new Uint8Array(256).map((_, at) => at)
    for (const [name, value] of [
      ['none', new Uint8Array()],
      ['big', big],
      ['all', all],
    ] as const) {
      await ok(backend.commit([{ key: key(name), value }]))
      const [item] = (await backend.range({ start: key(name) })).items
      assert.ok(item !== undefined, `${name} is there`)
      assert.equal(Buffer.compare(item.value, value), 0, `${name} is unchanged`)
    }
  })

  test("does not use the caller's buffer after the commit", async ({ backend, key, follow }) => {
    const watch = follow()
    await watch.next()
    const pooled = Buffer.from('before')
    await ok(backend.commit([{ key: key('a'), value: pooled }]))
    assert.equal(pooled.toString(), 'before', 'not detached')
    pooled.fill('x')
    assert.equal(await valueOf(backend, key('a')), 'before')
    const [event] = await watch.events(1)
    assert.equal(text(event!), 'before')
    const second = Buffer.from('second')
    const { previous } = await ok(backend.commit([{ key: key('a'), value: second }]))
    assert.equal(text(previous[0]!), 'before')
    await watch.stop()
  })

  test('rejects with the reason of an aborted signal', async ({ backend, key }) => {
    const reason = new Error('Enough')
    const signal = AbortSignal.abort(reason)
    await assert.rejects(backend.commit([{ key: key('a'), value: bytes('1') }], signal), reason)
    await assert.rejects(backend.range({ start: key('a'), signal }), reason)
    await assert.rejects(backend.currentRevision(signal), reason)
    await assert.rejects(backend.health(signal), reason)
    assert.equal(await valueOf(backend, key('a')), undefined)
    const later = new AbortController()
    const commit = backend.commit([{ key: key('b'), value: bytes('1') }], later.signal)
    later.abort(reason)
    // It may be faster than the abort, but it settles either way.
    await commit.catch((error: unknown) => assert.equal(error, reason))
  })

  test('returns the newest revision without a request, if it supports that', async ({ backend, put }) => {
    await put('a')
    const newest = await backend.currentRevision()
    assert.equal(backend.knownRevision?.() ?? newest, newest)
  })
}

function rangeTests(test: Test): void {
  test('a range reads one key, a prefix, or any interval', async ({ backend, key, prefix, put }) => {
    for (const name of ['a', 'a/1', 'a/2', 'a0', 'b']) await put(name)
    const keys = async (start: string, end?: string): Promise<string[]> => {
      const { items } = await backend.range({ start: key(start), ...(end !== undefined && { end: key(end) }) })
      return items.map((item) => item.key.slice(prefix.length))
    }
    assert.deepEqual(await keys('a'), ['a'])
    assert.deepEqual(await keys('nothing'), [])
    assert.deepEqual(await keys('a/', 'a0'), ['a/1', 'a/2'])
    assert.deepEqual(await keys('a', 'b'), ['a', 'a/1', 'a/2', 'a0'])
    assert.deepEqual(await keys('a/2', 'z'), ['a/2', 'a0', 'b'])
    assert.deepEqual(await keys('b', 'a'), [])
    assert.deepEqual(await keys('a', 'a'), [])
    const { items } = await backend.range({ start: '', end: prefixEnd('') })
    assert.equal(items.filter((item) => item.key.startsWith(prefix)).length, 5)
  })

  test('a range orders keys by their bytes', async ({ key, put, list }) => {
    const odd = [
      ' ',
      '!',
      '"',
      '%00',
      "'",
      '*',
      '-',
      '.',
      '/',
      '//',
      ':',
      'A',
      'Z',
      '[',
      '\\',
      '_',
      '`',
      'a',
      'a a',
      '~',
    ]
    for (const name of odd.toReversed()) await put(name, name)
    const { items } = await list()
    assert.deepEqual(
      items.map((item) => item.key),
      odd.map(key).sort((a, b) => Buffer.compare(Buffer.from(a), Buffer.from(b))),
    )
    for (const item of items) assert.equal(item.key, key(text(item)))
  })

  test('a range counts the keys beyond its limit', async ({ backend, prefix, end, put, list }) => {
    for (let n = 0; n < 7; n++) await put(n)
    const part = await list({ limit: 3 })
    assert.deepEqual([part.items.length, part.more, part.count], [3, true, 7])
    const exact = await list({ limit: 7 })
    assert.deepEqual([exact.items.length, exact.more, exact.count], [7, false, 7])
    const zero = await list({ limit: 0 })
    assert.deepEqual([zero.items.length, zero.more, zero.count], [7, false, 7])
    const count = await backend.range({ start: prefix, end, countOnly: true })
    assert.deepEqual([count.items.length, count.more, count.count], [0, false, 7])
  })

  test('a range omits values on request', async ({ backend, prefix, end, put, list }) => {
    const { revision } = await put('a', 'some value')
    const [item] = (await backend.range({ start: prefix, end, keysOnly: true })).items
    assert.deepEqual(
      [item?.value.length, item?.createRevision, item?.modRevision, item?.lease],
      [0, revision, revision, 0],
    )
    assert.equal((await list()).items[0]?.value.length, 'some value'.length)
  })

  test('a range reads the state at an older revision', async ({ backend, key, put, remove, list }) => {
    const first = await put('a', '1')
    const second = await put('b', '1')
    const third = await put('a', '2')
    const fourth = await remove('b')
    const fifth = await put('b', '3')
    const at = async (revision: Revision): Promise<string[]> => {
      const picture = await list({ revision })
      assert.equal(picture.revision, revision)
      assert.equal(picture.count, picture.items.length)
      return picture.items.map((item) => `${item.key.at(-1)}=${text(item)}`)
    }
    assert.deepEqual(await at(first.revision), ['a=1'])
    assert.deepEqual(await at(second.revision), ['a=1', 'b=1'])
    assert.deepEqual(await at(third.revision), ['a=2', 'b=1'])
    assert.deepEqual(await at(fourth.revision), ['a=2'])
    assert.deepEqual(await at(fifth.revision), ['a=2', 'b=3'])
    const [old] = (await backend.range({ start: key('b'), revision: second.revision })).items
    assert.deepEqual(shape(old), [key('b'), '1', second.revision, second.revision, 0])
    const [anew] = (await backend.range({ start: key('b'), revision: fifth.revision })).items
    assert.deepEqual(shape(anew), [key('b'), '3', fifth.revision, fifth.revision, 0])
  })

  test('a range fails at a future revision', async ({ backend, prefix, end }) => {
    const revision = (await backend.currentRevision()) + 1000
    await rejects(backend.range({ start: prefix, end, revision }), 'future-revision')
  })

  test('a range reads pages of one snapshot during writes', async ({ key, put, remove, list }) => {
    const names = Array.from({ length: 23 }, (_, n) => String(100 + n))
    for (const name of names) await put(name, 'old')
    const first = await list({ limit: 5 })
    const seen = [...first.items]
    for (let page = first, n = 0; page.more; n++) {
      await put(names[n]!, 'new')
      await remove(names.at(-1 - n)!)
      await put(`1${n}0x`, 'added')
      page = await list({ limit: 5, revision: first.revision, start: `${page.items.at(-1)!.key}\0` })
      assert.equal(page.revision, first.revision)
      seen.push(...page.items)
    }
    assert.deepEqual(
      seen.map((item) => [item.key, text(item)]),
      names.map((name) => [key(name), 'old']),
    )
  })

  test('a range contains a commit completely or not at all', async ({ backend, key, prefix, end }) => {
    const traffic = { on: true }
    const writer = (async (): Promise<void> => {
      for (let n = 0; n < 40; n++) {
        await ok(backend.commit(['a', 'b', 'c'].map((name) => ({ key: key(name), value: bytes(String(n)) }))))
      }
      traffic.on = false
    })()
    while (traffic.on) {
      const { items } = await backend.range({ start: prefix, end })
      assert.ok(new Set(items.map(text)).size <= 1 && [0, 3].includes(items.length), 'one revision')
      await turn()
    }
    await writer
  })
}

function compactionTests(test: Test): void {
  test('drops older history, keeps the current state, and never lowers the compacted revision', async ({
    backend,
    put,
    remove,
    list,
  }) => {
    const first = await put('a', '1')
    await put('b', '1')
    const third = await put('a', '2')
    const fourth = await remove('b')
    await put('c', '1')
    await backend.compact(third.revision)
    const error = await rejects(list({ revision: first.revision }), 'compacted')
    assert.equal(error.compactedRevision, third.revision)
    assert.deepEqual((await list({ revision: third.revision })).items.map(text), ['2', '1'])
    assert.deepEqual((await list({ revision: fourth.revision })).items.map(text), ['2'])
    assert.deepEqual((await list()).items.map(text), ['2', '1'])
    await backend.compact(third.revision)
    await backend.compact(first.revision)
    assert.equal((await rejects(list({ revision: third.revision - 1 }), 'compacted')).compactedRevision, third.revision)
    assert.equal((await backend.health()).compactedRevision, third.revision)
    const current = await backend.currentRevision()
    await backend.compact(current)
    assert.deepEqual((await list({ revision: current })).items.map(text), ['2', '1'])
    assert.equal(await backend.currentRevision(), current)
    assert.ok((await put('d', '1')).revision > current)
  })

  test('rejects compaction at a future revision', async ({ backend }) => {
    await rejects(backend.compact((await backend.currentRevision()) + 1000), 'future-revision')
  })

  test('preserves guards, previous values and creation revisions', async ({ backend, key, put, remove }) => {
    const first = await put('a', '1')
    const second = await put('a', '2')
    await put('b', '1')
    const gone = await remove('b')
    await backend.compact(gone.revision)
    const third = await put('a', '3', { expected: second.revision })
    assert.deepEqual(shape(third.previous[0]), [key('a'), '2', first.revision, second.revision, 0])
    await put('b', '2', { expected: 0 })
    assert.equal((await backend.range({ start: key('a') })).items[0]!.createRevision, first.revision)
  })

  test('does not affect later revisions during writes', async ({ backend, put, list }) => {
    let kept = (await put('x', '0')).revision
    for (let n = 1; n <= 60; n++) {
      const { revision } = await put('x', String(n))
      await put(n % 7, String(n))
      if (n % 5 !== 0) continue
      await backend.compact(kept)
      const old = (await list({ revision: kept })).items.find((item) => item.key.endsWith('/x'))
      assert.equal(text(old!), String(n === 5 ? 0 : n - 5))
      kept = revision
    }
  })
}

function watchTests(test: Test): void {
  test('a watch delivers past and present events in order, each once', async ({ put, remove, follow, key }) => {
    const first = await put('a', '1')
    const second = await put('a', '2')
    const third = await remove('a')
    const watch = follow(first.revision)
    assert.deepEqual((await watch.events(3)).map(eventShape), [
      ['put', key('a'), '1', first.revision, first.revision, undefined],
      ['put', key('a'), '2', first.revision, second.revision, '1'],
      ['delete', key('a'), '2', first.revision, third.revision, '2'],
    ])
    const fourth = await put('a', '3')
    const [event] = await watch.events(1)
    assert.deepEqual(eventShape(event!), ['put', key('a'), '3', fourth.revision, fourth.revision, undefined])
    assert.equal(watch.batches.at(-1)!.revision, fourth.revision)
    assert.deepEqual(await watch.stop(), { done: true, value: undefined })
  })

  test('a watch starts at the current revision if none is given, and reports that revision', async ({
    backend,
    put,
    follow,
  }) => {
    await put('a', '1')
    const now = await backend.currentRevision()
    const watch = follow()
    const begin = await watch.next()
    assert.deepEqual(begin.events, [])
    assert.ok(begin.revision >= now)
    const { revision } = await put('b', '2')
    const [event] = await watch.events(1)
    assert.equal(event!.modRevision, revision)
    await watch.stop()
  })

  test('a watch waits for a future start revision', async ({ put, follow }) => {
    const { revision } = await put('a', '0')
    const watch = follow(revision + 2)
    await put('a', '1')
    const second = await put('a', '2')
    const third = await put('a', '3')
    const events = await watch.events(second.revision >= revision + 2 ? 2 : 1)
    assert.ok(events.every((event) => event.modRevision >= revision + 2))
    assert.equal(events.at(-1)!.modRevision, third.revision)
    await watch.stop()
  })

  test('a watch delivers only events of the requested keys', async ({ backend, key, put }) => {
    const from = (await put('a', '0')).revision
    for (const name of ['b', 'a', 'a/1', 'c', 'a']) await put(name)
    const stop = new AbortController()
    const single = backend.watch({ start: key('a'), from, signal: stop.signal })
    const part = backend.watch({ start: key('a/'), end: key('c'), from, signal: stop.signal })
    assert.deepEqual(await take(single, 3), [key('a'), key('a'), key('a')])
    assert.deepEqual(await take(part, 2), [key('b'), key('a/1')])
    stop.abort()
  })

  test('a watch includes previous value, revisions and lease in each event', async ({
    backend,
    key,
    put,
    remove,
    follow,
    ttlMs,
  }) => {
    const lease = await backend.grantLease(ttlMs * 100)
    const first = await put('a', '1', { lease })
    const second = await put('a', '2')
    const third = await remove('a')
    const watch = follow(first.revision)
    const [created, changed, deleted] = await watch.events(3)
    assert.equal(created!.lease, lease)
    assert.equal(created!.previous, undefined)
    assert.deepEqual(shape(changed!.previous), [key('a'), '1', first.revision, first.revision, lease])
    assert.equal(changed!.lease, 0)
    assert.deepEqual(shape(deleted!.previous), [key('a'), '2', first.revision, second.revision, 0])
    assert.equal(deleted!.modRevision, third.revision)
    assert.equal(deleted!.createRevision, first.revision)
    await watch.stop()
  })

  for (const when of ['present', 'past']) {
    test(`a watch delivers a commit in one batch if it is in the ${when}`, async ({ backend, key, put, follow }) => {
      const from = (await put('start')).revision
      const live = follow(from)
      const width = 40
      const commits: Promise<Ok>[] = []
      for (let n = 0; n < 30; n++) {
        const writes = Array.from({ length: width }, (_, at) => ({ key: key(at), value: bytes(String(n)) }))
        commits.push(ok(backend.commit(writes)))
      }
      const revisions = new Set((await Promise.all(commits)).map(({ revision }) => revision))
      const watch = when === 'past' ? follow(from) : live
      await watch.events(1 + 30 * width)
      for (const { events, revision } of watch.batches) {
        const counts = Map.groupBy(events, (event) => event.modRevision)
        for (const [at, part] of counts) if (revisions.has(at)) assert.equal(part.length, width)
        assert.ok(events.every((event) => event.modRevision <= revision))
      }
      await watch.stop()
      await live.stop()
    })
  }

  test('a watch delivers the same events to every watcher, wherever it starts', async ({ put, remove, follow }) => {
    const from = (await put('x')).revision
    const early = [follow(from), follow(from), follow(from)]
    const writes = Array.from({ length: 60 }, (_, n) => (n % 6 === 5 ? remove(n % 4) : put(n % 4, String(n))))
    const revisions = (await Promise.all(writes)).map(({ revision }) => revision)
    const last = Math.max(...revisions)
    const late = [follow(from), follow(from)]
    const all = await Promise.all([...early, ...late].map((watch) => until(watch, last)))
    for (const events of all) assert.deepEqual(events.map(eventShape), all[0]!.map(eventShape))
    const order = all[0]!.map((event) => event.modRevision)
    assert.deepEqual(
      order,
      [...new Set(order)].sort((a, b) => a - b),
    )
    await Promise.all([...early, ...late].map((watch) => watch.stop()))
  })

  test('a watch resumes after the last revision without gap or repetition', async ({ put, follow }) => {
    const from = (await put('x', '0')).revision
    const total = 50
    const writer = (async (): Promise<void> => {
      for (let n = 1; n <= total; n++) await put(n % 5, String(n))
    })()
    const seen: string[] = []
    for (let next = from; seen.length < total + 1;) {
      const watch = follow(next)
      const batch = await watch.next()
      seen.push(...batch.events.map(text))
      next = batch.revision + 1
      await watch.stop()
    }
    await writer
    assert.deepEqual(
      seen,
      Array.from({ length: total + 1 }, (_, n) => String(n)),
    )
  })

  test('a watch continues after a range without a gap', async ({ put, list, follow }) => {
    const writer = (async (): Promise<void> => {
      for (let n = 0; n < 80; n++) await put(n % 9, String(n))
    })()
    await put('ready')
    const picture = await list()
    const state = new Map(picture.items.map((item) => [item.key, text(item)]))
    const watch = follow(picture.revision + 1)
    await writer
    const final = await list()
    const wanted = Math.max(...final.items.map((item) => item.modRevision))
    if (wanted > picture.revision) {
      for (const event of await until(watch, wanted)) state.set(event.key, text(event))
    }
    assert.deepEqual(state, new Map(final.items.map((item) => [item.key, text(item)])))
    await watch.stop()
  })

  test('a watch fails if the start revision is compacted', async ({ backend, put, remove, follow }) => {
    const first = await put('a', '1')
    await put('a', '2')
    const third = await put('a', '3')
    await put('a', '4')
    await backend.compact(third.revision)
    const late = follow(first.revision)
    const error = await rejects(late.next(), 'compacted')
    assert.equal(error.compactedRevision, third.revision)
    const after = follow(third.revision + 1)
    assert.deepEqual((await after.events(1)).map(text), ['4'])
    await after.stop()
    await inFullOrNot(follow(third.revision), ['put', '3', '2'])
    const gone = await remove('a')
    await backend.compact(gone.revision)
    await inFullOrNot(follow(gone.revision), ['delete', '4', '4'])
  })

  test('a watch continues if an earlier revision is compacted', async ({ backend, put, follow }) => {
    const { revision } = await put('a', '1')
    const watch = follow(revision)
    await watch.events(1)
    for (let n = 2; n < 6; n++) {
      const { revision } = await put('a', String(n))
      await backend.compact(revision)
      assert.deepEqual((await watch.events(1)).map(text), [String(n)])
    }
    await watch.stop()
  })

  test('a watch reports progress to an idle watcher', async ({ backend, prefix, put, pass, progressMs }, t) => {
    if (progressMs === undefined) return t.skip('this backend promises no progress')
    const stop = new AbortController()
    const [start, end] = [`${prefix}idle/`, `${prefix}idle0`]
    const watch = backend.watch({ start, end, signal: stop.signal })[Symbol.asyncIterator]()
    await watch.next()
    const { revision } = await put('elsewhere')
    const progress = watch.next()
    const progressed = { yet: false }
    void progress.finally(() => (progressed.yet = true))
    for (let n = 0; n < 100 && !progressed.yet; n++) await pass(progressMs / 10)
    const { value } = await progress
    assert.deepEqual(value.events, [])
    assert.ok(value.revision >= revision)
    stop.abort()
    assert.deepEqual(await watch.next(), { done: true, value: undefined })
  })

  test('a watch ends without an error if it is aborted before the start, while waiting, or between batches', async ({
    backend,
    prefix,
    end,
    put,
  }) => {
    const open = (signal: AbortSignal, from?: Revision): AsyncIterator<WatchBatch> => {
      const options = { start: prefix, end, signal, ...(from !== undefined && { from }) }
      return backend.watch(options)[Symbol.asyncIterator]()
    }
    const over = { done: true, value: undefined }
    assert.deepEqual(await open(AbortSignal.abort(), 1).next(), over)
    const waiting = new AbortController()
    const idle = open(waiting.signal, (await backend.currentRevision()) + 1)
    const next = idle.next()
    await turn()
    waiting.abort()
    assert.deepEqual(await next, over)
    const between = new AbortController()
    const { revision } = await put('a')
    await put('b')
    const busy = open(between.signal, revision)
    assert.equal((await busy.next()).done, false)
    between.abort()
    assert.deepEqual(await busy.next(), over)
    assert.deepEqual(await busy.next(), over)
  })

  test('a watch loses no events for a watcher that stops reading for long', async ({ backend, key, put, follow }) => {
    const from = (await put('x', '0')).revision
    const watch = follow(from)
    await watch.events(1)
    const total = 3000
    const value = new Uint8Array(4096)
    for (let n = 0; n < total; n += 100) {
      await Promise.all(
        Array.from({ length: 100 }, (_, at) => {
          new DataView(value.buffer).setUint32(0, n + at)
          return backend.commit([{ key: key((n + at) % 50), value: value.slice() }])
        }),
      )
    }
    const events = await watch.events(total)
    const order = events.map(({ value }) => new DataView(value.buffer, value.byteOffset).getUint32(0))
    assert.deepEqual(new Set(order).size, total)
    assert.ok(events.every((event, at) => at === 0 || events[at - 1]!.modRevision < event.modRevision))
    await watch.stop()
  })
}

function boundedWatchTests(test: Test): void {
  test('end after the last revision wanted', async ({ backend, prefix, end, put, remove }) => {
    const { revision: first } = await put('a', '1')
    await put('b', '1')
    const { revision: last } = await remove('a')
    await put('a', '2')
    for (const [through, expected] of [
      [first, ['put a']],
      [last - 1, ['put a', 'put b']],
      [last, ['put a', 'put b', 'delete a']],
    ] as const) {
      const { signal } = new AbortController()
      const seen: string[] = []
      for await (const { events, revision } of backend.watch({ start: prefix, end, from: first, through, signal })) {
        assert.ok(revision <= through)
        for (const { type, key } of events) seen.push(`${type} ${key.slice(prefix.length)}`)
      }
      assert.deepEqual(seen, expected)
    }
  })

  test('end at once if nothing is wanted', async ({ backend, prefix, end, put }) => {
    const { revision } = await put('a', '1')
    const { signal } = new AbortController()
    for await (const _ of backend.watch({ start: prefix, end, from: revision + 1, through: revision, signal }))
      assert.fail('There is nothing to deliver')
  })
}

function leaseTests(test: Test): void {
  test('deletes the keys of an expired lease in a commit that watchers receive', async (bench) => {
    const { backend, key, put, list, follow, pass, ttlMs } = bench
    const lease = await backend.grantLease(ttlMs)
    const { revision } = await put('a', '1', { lease })
    await put('b', '2', { lease })
    await put('c', '3')
    assert.equal((await backend.range({ start: key('a') })).items[0]!.lease, lease)
    const watch = follow(revision + 1)
    await watch.events(2)
    await pass(ttlMs / 2)
    assert.equal((await list()).count, 3)
    await pass(ttlMs * 1.5)
    const gone = await watch.events(2)
    assert.deepEqual(
      new Set(gone.map((event) => `${event.type} ${event.key} ${text(event.previous!)}`)),
      new Set([`delete ${key('a')} 1`, `delete ${key('b')} 2`]),
    )
    assert.deepEqual((await list()).items.map(text), ['3'])
    assert.ok((await backend.currentRevision()) >= gone[0]!.modRevision)
    await rejects(backend.keepAliveLease(lease), 'lease-not-found')
    await rejects(backend.revokeLease(lease), 'lease-not-found')
    await rejects(backend.commit([{ key: key('d'), value: bytes('1'), lease }]), 'lease-not-found')
    assert.equal(await valueOf(backend, key('d')), undefined)
    await watch.stop()
  })

  test('keeps the keys of a renewed lease', async ({ backend, key, put, list, follow, pass, ttlMs }) => {
    const lease = await backend.grantLease(ttlMs)
    const { revision } = await put('a', '1', { lease })
    for (let n = 0; n < 4; n++) {
      await pass(ttlMs / 2)
      await backend.keepAliveLease(lease)
    }
    assert.equal((await list()).count, 1)
    const watch = follow(revision + 1)
    await pass(ttlMs * 2)
    const [event] = await watch.events(1)
    assert.deepEqual([event!.type, event!.key], ['delete', key('a')])
    await watch.stop()
  })

  test('deletes the keys of a revoked lease', async ({ backend, put, list, ttlMs }) => {
    const lease = await backend.grantLease(ttlMs * 100)
    const other = await backend.grantLease(ttlMs * 100)
    assert.notEqual(lease, other)
    await put('a', '1', { lease })
    await put('b', '2', { lease: other })
    await backend.revokeLease(lease)
    assert.deepEqual((await list()).items.map(text), ['2'])
    await rejects(backend.revokeLease(lease), 'lease-not-found')
    await rejects(backend.keepAliveLease(lease), 'lease-not-found')
    await backend.keepAliveLease(other)
  })

  test('attaches a key only to the lease of its last write', async ({ backend, put, remove, list, ttlMs }) => {
    const leases: LeaseId[] = []
    for (let n = 0; n < 2; n++) leases.push(await backend.grantLease(ttlMs * 100))
    const [first, second] = leases as [LeaseId, LeaseId]
    await put('freed', '1', { lease: first })
    await put('freed', '2')
    await put('moved', '1', { lease: first })
    await put('moved', '2', { lease: second })
    await put('anew', '1', { lease: first })
    await remove('anew')
    await put('anew', '2')
    await backend.revokeLease(first)
    assert.deepEqual(
      (await list()).items.map((item) => item.key.split('/').at(-1)),
      ['anew', 'freed', 'moved'],
    )
    await backend.revokeLease(second)
    assert.deepEqual(
      (await list()).items.map((item) => item.key.split('/').at(-1)),
      ['anew', 'freed'],
    )
  })

  test('rejects a write with a lease that was never granted', async ({ backend, key, put }) => {
    const before = (await put('x')).revision
    const writes = [
      { key: key('a'), value: bytes('1') },
      { key: key('b'), value: bytes('1'), lease: 12_345 },
    ]
    await rejects(backend.commit(writes), 'lease-not-found')
    assert.equal(await valueOf(backend, key('a')), undefined)
    assert.equal(await backend.currentRevision(), before)
    await rejects(backend.keepAliveLease(12_345), 'lease-not-found')
    await rejects(backend.revokeLease(12_345), 'lease-not-found')
    await assert.rejects(backend.grantLease(0), RangeError)
  })
}

/** Each case with an in-memory fork, and with a fork in a file if the backend supports it. */
function timeTests(test: Test): void {
  test('are to a second and ascend with the revision', async ({ backend, put, pass }) => {
    const { revision: first } = await put('a', '1')
    await pass(2000)
    const { revision: second } = await put('a', '2')
    const [firstMs = NaN, secondMs = NaN] = [backend.timeOf(first), backend.timeOf(second)]
    assert.ok(secondMs - firstMs > 1000 && secondMs - firstMs < 5000, `${firstMs} and ${secondMs}`)
  })

  test('find the last revision of a second', async ({ backend, put, pass }) => {
    const { revision: first } = await put('a', '1')
    await pass(2000)
    const { revision: second } = await put('a', '2')
    const [firstMs = NaN, secondMs = NaN] = [backend.timeOf(first), backend.timeOf(second)]
    assert.equal(backend.revisionAt(firstMs), second - 1)
    assert.equal(backend.revisionAt(secondMs - 1000), second - 1)
    assert.equal(backend.revisionAt(secondMs), second)
    assert.equal(backend.revisionAt(secondMs + 1e9), second)
    assert.equal(backend.revisionAt(0), undefined)
  })
}

function forkTests(test: Test): void {
  const forked = (name: string, run: (bench: Bench, fork: Backend['fork']) => Promise<void>): void => {
    test(name, async (bench) => {
      const folder = await mkdtemp(join(tmpdir(), 'backend-suite-'))
      const forks: Backend[] = []
      const forkTo =
        (file?: string): Backend['fork'] =>
        async (options) => {
          const fork = await bench.backend.fork({ ...options, ...(file !== undefined && { file }) })
          forks.push(fork)
          return fork
        }
      try {
        await run(bench, forkTo())
        await run(bench, forkTo(join(folder, 'fork')))
      } finally {
        await Promise.all(forks.map((fork) => fork.close()))
        await rm(folder, { recursive: true })
      }
    })
  }

  forked(
    'have the state at the revision they were made at',
    async ({ backend, prefix, end, list, put, remove }, fork) => {
      await put('a', '1')
      await put('b', '1')
      const { revision } = await put('a', '2')
      await remove('b')
      await put('c', '1')
      const there = await fork({ revision })
      const copy = await there.range({ start: prefix, end })
      assert.deepEqual([copy.revision, copy.items.map(shape)], [revision, (await list({ revision })).items.map(shape)])
      assert.equal(await there.currentRevision(), revision)
      assert.deepEqual((await there.range({ start: prefix, end, revision })).items.map(shape), copy.items.map(shape))
      assert.ok((await backend.currentRevision()) > revision)
      for (const name of ['a', 'c']) await remove(name)
    },
  )

  forked('have the times of the commits', async ({ backend, put, pass }, fork) => {
    const { revision } = await put('a', '1')
    await pass(2000)
    await put('a', '2')
    const there = await fork({ revision })
    const timeMs = backend.timeOf(revision)
    assert.ok(timeMs !== undefined)
    assert.deepEqual([there.timeOf(revision), there.revisionAt(timeMs + 1e9)], [timeMs, revision])
  })

  forked('are independent of each other', async ({ backend, prefix, end, list, put }, fork) => {
    await put('a', 'common')
    const revision = await backend.currentRevision()
    const there = await fork()
    const mine = await put('a', 'mine')
    const theirs = await ok(there.commit([{ key: `${prefix}b`, value: bytes('theirs'), expected: 0 }]))
    assert.ok(mine.revision > revision && theirs.revision > revision)
    assert.deepEqual((await list()).items.map(text), ['mine'])
    assert.deepEqual((await there.range({ start: prefix, end })).items.map(text), ['common', 'theirs'])
  })

  forked('are watched from the revision on', async ({ prefix, end, put }, fork) => {
    const { revision } = await put('a', '1')
    await put('a', 'unseen')
    const there = await fork({ revision })
    const stop = new AbortController()
    const options = { start: prefix, end, from: revision + 1, signal: stop.signal }
    const watch = createFollower(there.watch(options)[Symbol.asyncIterator](), stop)
    await ok(there.commit([{ key: `${prefix}a`, value: bytes('2') }]))
    const [event] = await watch.events(1)
    assert.deepEqual([event?.type, text(event!), text(event!.previous!)], ['put', '2', '1'])
    await watch.stop()
  })

  forked('have separate leases', async ({ backend, key, list, prefix, end, put, ttlMs }, fork) => {
    const lease = await backend.grantLease(10 * ttlMs)
    await put('leased', 'x', { lease })
    const there = await fork()
    await there.keepAliveLease(lease)
    await there.revokeLease(lease)
    assert.equal((await there.range({ start: key('leased') })).count, 0)
    assert.equal((await list({ start: 'leased' })).count, 1)
    await backend.revokeLease(lease)
    assert.equal((await there.range({ start: prefix, end })).count, (await list()).count)
  })

  forked('are refused at a compacted or future revision', async ({ backend, put }, fork) => {
    const { revision } = await put('a', '1')
    const later = await put('a', '2')
    await put('a', '3')
    await rejects(fork({ revision: later.revision + 1000 }), 'future-revision')
    await backend.compact(later.revision)
    await rejects(fork({ revision }), 'compacted')
    assert.equal(await (await fork({ revision: later.revision })).currentRevision(), later.revision)
  })
}

function lifeTests(test: Test): void {
  test('is healthy and reports its size and revisions', async ({ backend, key }) => {
    const before = await backend.health()
    const { revision } = await ok(backend.commit([{ key: key('a'), value: new Uint8Array(300_000) }]))
    const after = await backend.health()
    assert.deepEqual([before.ok, before.message, after.ok, after.message], [true, '', true, ''])
    assert.ok(after.revision >= revision)
    assert.ok(after.sizeBytes >= after.sizeInUseBytes && after.sizeInUseBytes >= 0)
  })

  test('writes a snapshot during writes that opens as the same store', async (bench, t) => {
    const { backend, list, put, openSnapshot, prefix, end } = bench
    if (openSnapshot === undefined) return t.skip('snapshots of this backend are opened by outside tools')
    const folder = await mkdtemp(join(tmpdir(), 'backend-suite-'))
    try {
      for (let n = 0; n < 50; n++) await put(n, `value ${n}`)
      const traffic = { on: true }
      const writer = (async (): Promise<void> => {
        for (let n = 0; traffic.on; n++) await Promise.all([put(n % 60, `later ${n}`), turn()])
      })()
      const file = join(folder, 'snapshot')
      const revision = await backend.snapshot(file)
      assert.equal((await stat(file)).mode & 0o077, 0, 'only the owner can read it')
      traffic.on = false
      await writer
      const there = await openSnapshot(file)
      try {
        assert.equal(await there.currentRevision(), revision)
        const picture = await list({ revision })
        const copy = await there.range({ start: prefix, end })
        assert.deepEqual(copy.items.map(shape), picture.items.map(shape))
        assert.ok((await ok(there.commit([{ key: `${prefix}z`, value: bytes('new') }]))).revision > revision)
      } finally {
        await there.close()
      }
    } finally {
      await rm(folder, { recursive: true })
    }
  })

  const closing = async (bench: Bench): Promise<void> => {
    const { backend, key, prefix, end, follow, put } = bench
    await put('x')
    const watch = follow()
    await watch.next()
    const waiting = watch.next()
    const flying = Array.from({ length: 20 }, (_, n) => put(n))
    const ended = assert.rejects(
      (async (): Promise<void> => {
        await waiting
        for (;;) await watch.next()
      })(),
      (error) => error instanceof StorageError && error.code === 'closed',
    )
    await backend.close()
    for (const { status } of await Promise.allSettled(flying)) assert.equal(status, 'fulfilled')
    await ended
    await backend.close()
    await rejects(backend.commit([{ key: key('a'), value: bytes('1') }]), 'closed')
    await rejects(backend.range({ start: prefix, end }), 'closed')
    await rejects(backend.currentRevision(), 'closed')
    await rejects(backend.compact(1), 'closed')
    await rejects(backend.grantLease(1000), 'closed')
    await rejects(backend.keepAliveLease(1), 'closed')
    await rejects(backend.revokeLease(1), 'closed')
    await rejects(backend.health(), 'closed')
    await rejects(backend.snapshot('/nonexistent/file'), 'closed')
    await rejects(follow(1).next(), 'closed')
  }
  test('finishes pending commits when it is closed, then rejects all calls', closing, { isOwn: true })
}

/** The reference model: a full copy of the state for every revision. */
class Model {
  readonly states: { readonly revision: Revision; readonly items: ReadonlyMap<string, KeyValue> }[]
  readonly events: unknown[][] = []
  compacted: Revision

  constructor(revision: Revision) {
    this.states = [{ revision, items: new Map() }]
    this.compacted = revision
  }

  get items(): ReadonlyMap<string, KeyValue> {
    return this.states.at(-1)!.items
  }

  get revision(): Revision {
    return this.states.at(-1)!.revision
  }

  at(revision: Revision): ReadonlyMap<string, KeyValue> {
    return this.states.findLast((state) => state.revision <= revision)!.items
  }

  accepts(writes: readonly Write[]): boolean {
    return writes.every(
      ({ key, expected }) => expected === undefined || expected === (this.items.get(key)?.modRevision ?? 0),
    )
  }

  apply(writes: readonly Write[], revision: Revision): void {
    const items = new Map(this.items)
    for (const { key, value } of writes) {
      const previous = items.get(key)
      if (value === null && previous === undefined) continue
      const createRevision = previous?.createRevision ?? revision
      const shown = value ?? previous!.value
      const type = value === null ? 'delete' : 'put'
      const old = previous === undefined ? undefined : text(previous)
      this.events.push([type, key, text({ value: shown }), createRevision, revision, old])
      if (value === null) items.delete(key)
      else items.set(key, { key, value, createRevision, modRevision: revision, lease: 0 })
    }
    if (revision > this.revision) this.states.push({ revision, items })
  }
}

type Guard = 'none' | 'right' | 'absent' | 'stale'
interface PlannedWrite {
  readonly name: number
  readonly value: string | null
  readonly guard: Guard
}
type Operation =
  | { readonly op: 'commit'; readonly writes: readonly PlannedWrite[] }
  | { readonly op: 'range'; readonly back: number; readonly from: number; readonly limit: number }
  | { readonly op: 'compact'; readonly back: number }

const name = fc.integer({ min: 0, max: 7 })
const oneWrite = fc.record({
  name,
  value: fc.option(fc.string({ maxLength: 6 }), { freq: 4 }),
  guard: fc.constantFrom<Guard[]>('none', 'none', 'right', 'right', 'absent', 'stale'),
})
const operation: fc.Arbitrary<Operation> = fc.oneof(
  {
    weight: 8,
    arbitrary: fc.record({
      op: fc.constant('commit' as const),
      writes: fc.uniqueArray(oneWrite, { selector: (write) => write.name, minLength: 1, maxLength: 4 }),
    }),
  },
  {
    weight: 4,
    arbitrary: fc.record({
      op: fc.constant('range' as const),
      back: fc.integer({ min: 0, max: 12 }),
      from: name,
      limit: fc.integer({ min: 0, max: 5 }),
    }),
  },
  { weight: 1, arbitrary: fc.record({ op: fc.constant('compact' as const), back: fc.integer({ min: 0, max: 8 }) }) },
)

function propertyTests(test: Test): void {
  test('agrees with a simple model for any sequence of operations', async (bench) => {
    await fc.assert(
      fc.asyncProperty(fc.array(operation, { minLength: 1, maxLength: 60, size: 'max' }), async (operations) => {
        const own = createBench(bench)
        const model = new Model(await own.backend.currentRevision())
        const begin = model.revision
        const live = own.follow(begin + 1)
        const seen: StorageEvent[] = []
        const catchUp = async (): Promise<void> => {
          seen.push(...(await live.events(model.events.length - seen.length)))
        }
        for (const operation of operations) {
          // A watcher that has not read compacted events rightly loses its position.
          if (operation.op === 'compact') await catchUp()
          await perform(own, model, operation)
        }
        await catchUp()
        assert.deepEqual(seen.map(eventShape), model.events)
        await live.stop()
        const kept = model.events.filter((event) => (event[4] as Revision) > model.compacted)
        const past = own.follow(model.compacted + 1)
        assert.deepEqual((await past.events(kept.length)).map(eventShape), kept)
        await past.stop()
      }),
      { seed: PROPERTY_SEED, numRuns: 40, endOnFailure: true },
    )
  })
}

async function perform(bench: Bench, model: Model, operation: Operation): Promise<void> {
  if (operation.op === 'commit') return performCommit(bench, model, operation.writes)
  const revision = Math.max(model.states[0]!.revision, model.revision - operation.back)
  if (operation.op === 'range') return performRange(bench, model, { ...operation, revision })
  await bench.backend.compact(revision)
  model.compacted = Math.max(model.compacted, revision)
}

async function performCommit({ backend, key }: Bench, model: Model, plans: readonly PlannedWrite[]): Promise<void> {
  const writes = plans.map((write) => planWrite(key(write.name), write, model))
  const before = writes.map(({ key }) => shape(model.items.get(key)))
  const result = await backend.commit(writes)
  assert.equal(result.ok, model.accepts(writes))
  assert.deepEqual((result.ok ? result.previous : result.current).map(shape), before)
  const changes = writes.some(({ key, value }) => value !== null || model.items.has(key))
  if (result.ok && changes) {
    assert.ok(result.revision > model.revision)
    model.apply(writes, result.revision)
  }
  assert.equal(await backend.currentRevision(), model.revision)
}

async function performRange(
  { backend, key, prefix, end }: Bench,
  model: Model,
  { back, from, limit, revision }: { back: number; from: number; limit: number; revision: Revision },
): Promise<void> {
  const start = from === 0 ? prefix : key(from)
  const answer = backend.range({ start, end, limit, ...(back > 0 && { revision }) })
  if (back > 0 && revision < model.compacted) return void (await rejects(answer, 'compacted'))
  const expected = [...model.at(back > 0 ? revision : model.revision).values()]
    .filter((item) => item.key >= start)
    .sort((a, b) => (a.key < b.key ? -1 : 1))
  const { items, count, more } = await answer
  const part = limit === 0 ? expected : expected.slice(0, limit)
  assert.deepEqual([items.map(shape), count, more], [part.map(shape), expected.length, part.length < expected.length])
}

function planWrite(key: string, write: PlannedWrite, model: Model): Write {
  const current = model.items.get(key)?.modRevision ?? 0
  const guards = { right: current, absent: 0, stale: Math.max(1, current - 1) }
  const value = write.value === null ? null : bytes(write.value)
  return write.guard === 'none' ? { key, value } : { key, value, expected: guards[write.guard] }
}

function createBench(under: BackendUnderTest): Bench {
  const { backend } = under
  const prefix = `/suite/${process.pid}-${++prefixes}/`
  const end = prefixEnd(prefix)
  const key = (name: string | number): string => `${prefix}${name}`
  return {
    ...under,
    prefix,
    end,
    key,
    put: (name, value = 'x', extra = {}) => ok(backend.commit([{ key: key(name), value: bytes(value), ...extra }])),
    remove: (name) => ok(backend.commit([{ key: key(name), value: null }])),
    list: ({ start = '', ...options } = {}) =>
      backend.range({ start: start.startsWith(prefix) ? start : key(start), end, ...options }),
    follow(from) {
      const abort = new AbortController()
      const options = { start: prefix, end, signal: abort.signal, ...(from !== undefined && { from }) }
      return createFollower(backend.watch(options)[Symbol.asyncIterator](), abort)
    },
  }
}

function createFollower(iterator: AsyncIterator<WatchBatch>, abort: AbortController): Follower {
  const batches: WatchBatch[] = []
  const next = async (): Promise<WatchBatch> => {
    const { done, value } = await iterator.next()
    assert.ok(!done, 'the watch goes on')
    assert.ok(value.revision >= (batches.at(-1)?.revision ?? 0), 'positions do not go back')
    batches.push(value)
    return value
  }
  const left: StorageEvent[] = []
  return {
    iterator,
    batches,
    next,
    async events(count) {
      while (left.length < count) left.push(...(await next()).events)
      return left.splice(0, count)
    },
    stop() {
      abort.abort()
      return iterator.next()
    },
  }
}

/** All events up to and including the one at `revision`. */
async function until(watch: Follower, revision: Revision): Promise<StorageEvent[]> {
  const events: StorageEvent[] = []
  while ((events.at(-1)?.modRevision ?? 0) < revision) events.push(...(await watch.next()).events)
  return events
}

/** The first event of a watch that starts at the compacted revision is complete, or there is none. */
async function inFullOrNot(watch: Follower, expected: [type: string, value: string, previous: string]): Promise<void> {
  try {
    const [event] = await watch.events(1)
    assert.deepEqual([event!.type, text(event!), text(event!.previous!)], expected)
    await watch.stop()
  } catch (caught) {
    if (!(caught instanceof StorageError)) throw caught
    assert.equal(caught.code, 'compacted')
  }
}

async function take(watch: AsyncIterable<WatchBatch>, count: number): Promise<string[]> {
  const keys: string[] = []
  for await (const { events } of watch) {
    keys.push(...events.map((event) => event.key))
    if (keys.length >= count) break
  }
  return keys
}

/** Yields to the event loop, so that a loop over a fast backend blocks nothing. */
function turn(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve))
}

async function ok(result: Promise<CommitResult>): Promise<Ok> {
  const settled = await result
  assert.ok(settled.ok, 'the guards hold')
  return settled
}

async function failed(result: Promise<CommitResult>): Promise<Refused> {
  const settled = await result
  assert.ok(!settled.ok, 'a guard fails')
  return settled
}

async function rejects(promise: Promise<unknown>, code: StorageErrorCode): Promise<StorageError> {
  const error = await promise.then(
    () => undefined,
    (error: unknown) => error,
  )
  assert.ok(error instanceof StorageError, `fails with ${code}: ${String(error)}`)
  assert.equal(error.code, code, error.message)
  return error
}

async function valueOf(backend: Backend, key: string): Promise<string | undefined> {
  const [item] = (await backend.range({ start: key })).items
  return item === undefined ? undefined : text(item)
}

function bytes(text: string): Uint8Array {
  return Buffer.from(text)
}

function text({ value }: { readonly value: Uint8Array }): string {
  return Buffer.from(value).toString()
}

function shape(item: KeyValue | undefined): unknown[] | undefined {
  return item && [item.key, text(item), item.createRevision, item.modRevision, item.lease]
}

function eventShape(event: StorageEvent): unknown[] {
  const { type, key, createRevision, modRevision, previous } = event
  return [type, key, text(event), createRevision, modRevision, previous && text(previous)]
}
