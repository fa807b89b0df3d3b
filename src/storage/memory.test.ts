import assert from 'node:assert/strict'
import { describe, it } from 'node:test'

import { createVirtualClock } from '#lib/clock.ts'
import { createSeededRandom } from '#lib/random.ts'

import { backendSuite } from './backend.suite.ts'
import { prefixEnd, StorageError, type Backend } from './backend.ts'
import { createMemoryBackend, openMemorySnapshot } from './memory.ts'

const bytes = (text: string): Uint8Array => Buffer.from(text)

backendSuite('memory', async () => {
  const clock = createVirtualClock()
  const options = { clock, random: createSeededRandom(1) }
  return {
    backend: createMemoryBackend(options),
    pass: (ms) => clock.advance(ms),
    ttlMs: 10_000,
    progressMs: 5000,
    openSnapshot: (file) => openMemorySnapshot(file, options),
  }
})

async function texts(backend: Backend): Promise<string[]> {
  const { items } = await backend.range({ start: '', end: prefixEnd('') })
  return items.map((item) => `${item.key}=${Buffer.from(item.value).toString()}`)
}

describe('memory backend', () => {
  const create = (historyMs?: number): { backend: Backend; clock: ReturnType<typeof createVirtualClock> } => {
    const clock = createVirtualClock()
    const random = createSeededRandom(1)
    return { clock, backend: createMemoryBackend({ clock, random, ...(historyMs && { historyMs }) }) }
  }

  it('keeps the history window and compacts older history automatically', async () => {
    const { backend, clock } = create(60_000)
    await backend.commit([{ key: 'a', value: bytes('1') }])
    await clock.advance(30_000)
    const { revision } = await backend.commit([{ key: 'a', value: bytes('2') }])
    await clock.advance(59_000)
    await backend.range({ start: 'a', revision })
    await clock.advance(60_000)
    await backend.commit([{ key: 'a', value: bytes('3') }])
    await clock.advance(70_000)
    await assert.rejects(
      backend.range({ start: 'a', revision: revision }),
      (error) => error instanceof StorageError && error.code === 'compacted',
    )
    await backend.close()
    assert.equal(clock.pending, 0, 'no timer is left behind')
  })

  it('forks into independent stores, with history and leases', async () => {
    const { backend } = create()
    const lease = await backend.grantLease(1000)
    const { revision } = await backend.commit([{ key: 'a', value: bytes('1') }])
    await backend.commit([{ key: 'b', value: bytes('1'), lease }])
    const fork = await backend.fork({ random: createSeededRandom(2) })
    await backend.commit([{ key: 'a', value: bytes('mine') }])
    await fork.commit([{ key: 'c', value: bytes('theirs') }])
    assert.deepEqual(await texts(backend), ['a=mine', 'b=1'])
    assert.deepEqual(await texts(fork), ['a=1', 'b=1', 'c=theirs'])
    assert.equal((await fork.range({ start: '', end: 'z', revision })).count, 1)
    const stop = new AbortController()
    const seen: string[] = []
    for await (const { events } of fork.watch({ start: '', end: 'z', from: 1, signal: stop.signal })) {
      seen.push(...events.map((event) => event.key))
      stop.abort()
    }
    assert.deepEqual(seen, ['a', 'b', 'c'])
    await fork.revokeLease(lease)
    assert.deepEqual(await texts(fork), ['a=1', 'c=theirs'])
    assert.deepEqual(await texts(backend), ['a=mine', 'b=1'])
    await fork.close()
    await backend.close()
  })

  it('reads a part of a hundred thousand keys without visiting the rest', async () => {
    const { backend } = create()
    for (let n = 0; n < 100_000; n += 1000) {
      const writes = Array.from({ length: 1000 }, (_, at) => {
        const id = ((n + at) * 7919) % 100_000
        return { key: `/k/${String(id).padStart(6, '0')}`, value: bytes('x') }
      })
      await backend.commit(writes)
    }
    for (let n = 0; n < 300; n++) {
      const page = await backend.range({ start: `/k/0${String(n).padStart(5, '0')}`, end: '/k0', limit: 10 })
      assert.deepEqual([page.items.length, page.count, page.more], [10, 100_000 - n, true])
    }
    await backend.close()
  })
})
