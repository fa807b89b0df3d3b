import assert from 'node:assert/strict'
import { describe, it } from 'node:test'

import { createVirtualClock } from '#lib/clock.ts'
import { createSeededRandom } from '#lib/random.ts'
import type { LeaseId } from '#storage/backend.ts'
import { createMemoryBackend } from '#storage/memory.ts'

import { SharedLeases } from './shared-leases.ts'

const HOUR_MS = 3_600_000

function bed(options: { ttlMs?: number; reuseMs?: number } = {}) {
  const clock = createVirtualClock()
  const backend = createMemoryBackend({ clock, random: createSeededRandom(1) })
  const granted: number[] = []
  const grantLease = (ttlMs: number): Promise<LeaseId> => {
    granted.push(ttlMs)
    return backend.grantLease(ttlMs)
  }
  const leases = new SharedLeases({ backend: { grantLease }, clock, ttlMs: HOUR_MS, ...options })
  const put = (key: string): Promise<LeaseId> =>
    leases.with(async (lease) => {
      await backend.commit([{ key, value: Buffer.from('1'), lease }])
      return lease
    })
  const keys = async (): Promise<string[]> =>
    (await backend.range({ start: '/', end: '0' })).items.map(({ key }) => key)
  return { clock, backend, granted, put, keys }
}

describe('SharedLeases', () => {
  it('shares one lease for the keys of a minute, and no key expires early', async () => {
    const { clock, granted, put, keys } = bed()
    await Promise.all([put('/a'), put('/b')])
    await clock.advance(59_000)
    await put('/c')
    await clock.advance(2000)
    await put('/d')
    assert.deepEqual(granted, [HOUR_MS + 60_000, HOUR_MS + 60_000])
    await clock.advance(HOUR_MS - 2000)
    assert.deepEqual(await keys(), ['/a', '/b', '/c', '/d'])
    await clock.advance(2000)
    assert.deepEqual(await keys(), ['/d'])
    await clock.advance(60_000)
    assert.deepEqual(await keys(), [])
  })

  it('attaches at most a thousand keys to one lease', async () => {
    const { granted, put } = bed()
    for (let at = 0; at < 2001; at++) await put(`/${at}`)
    assert.equal(granted.length, 3)
  })

  it('extends short lifetimes by at most a twentieth, or not at all if configured', async () => {
    const short = bed({ ttlMs: 10_000 })
    await short.put('/a')
    assert.deepEqual(short.granted, [10_500])
    const alone = bed({ reuseMs: 0 })
    await alone.put('/a')
    await alone.clock.advance(1)
    await alone.put('/b')
    assert.deepEqual(alone.granted, [HOUR_MS, HOUR_MS])
  })

  it('requests a new lease after an early expiry or a failure', async () => {
    const { backend, granted, put, keys } = bed()
    await backend.revokeLease(await put('/a'))
    await put('/b')
    assert.deepEqual(await keys(), ['/b'])
    assert.equal(granted.length, 2)

    let isFull = true
    const leases = new SharedLeases({
      backend: { grantLease: () => (isFull ? Promise.reject(new Error('full')) : Promise.resolve(7)) },
      clock: createVirtualClock(),
      ttlMs: HOUR_MS,
    })
    const ask = (): Promise<LeaseId> => leases.with((lease) => Promise.resolve(lease))
    await assert.rejects(ask(), { message: 'full' })
    isFull = false
    assert.equal(await ask(), 7)
  })
})
