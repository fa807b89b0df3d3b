/** The promises of forks and snapshots. */
import assert from 'node:assert/strict'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

import type { Backend } from '../backend.ts'
import { type Bench, bytes, createFollower, ok, rejects, shape, type Test, text } from './bench.fixture.ts'

export function forkTests(test: Test): void {
  // Each case with an in-memory fork, and with a fork in a file if the backend supports it.
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
