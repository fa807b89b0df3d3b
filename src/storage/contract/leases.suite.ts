/** The promises of leases. */
import assert from 'node:assert/strict'

import type { LeaseId } from '../backend.ts'
import { type Test, rejects, valueOf, bytes, text } from './bench.fixture.ts'

export function leaseTests(test: Test): void {
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
