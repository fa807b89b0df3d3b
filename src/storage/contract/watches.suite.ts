/** The promises of watches. */
import assert from 'node:assert/strict'

import type { Revision, WatchBatch } from '../backend.ts'
import {
  type Test,
  type Ok,
  until,
  inFullOrNot,
  take,
  turn,
  ok,
  rejects,
  bytes,
  text,
  shape,
  eventShape,
} from './bench.fixture.ts'

export function watchTests(test: Test): void {
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
