/** The promises of health and close. */
import assert from 'node:assert/strict'
import { mkdtemp, rm, stat } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

import { StorageError } from '../backend.ts'
import { type Bench, type Test, turn, ok, rejects, bytes, shape } from './bench.fixture.ts'

export function lifeTests(test: Test): void {
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
