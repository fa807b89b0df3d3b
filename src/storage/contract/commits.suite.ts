/** The promises of commits. */
import assert from 'node:assert/strict'

import type { StorageError } from '../backend.ts'
import { type Test, type Ok, ok, failed, rejects, valueOf, bytes, text, shape } from './bench.fixture.ts'

export function commitTests(test: Test): void {
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
