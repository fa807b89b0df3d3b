import assert from 'node:assert/strict'
import { describe, it } from 'node:test'

import { createVirtualClock } from '../clock.ts'
import { ExpiringCache } from './expiring-cache.ts'

describe('ExpiringCache', () => {
  it('drops the oldest value when it is full, and every value when it expires', async () => {
    const clock = createVirtualClock()
    const cache = new ExpiringCache<number>(clock, 2)
    cache.set('a', 1, 1000)
    cache.set('b', 2, 5000)
    cache.set('c', 3, 5000)
    assert.deepEqual(
      ['a', 'b', 'c'].map((key) => cache.get(key)),
      [undefined, 2, 3],
    )
    cache.set('b', 4, 1000)
    await clock.advance(1000)
    assert.deepEqual(
      ['b', 'c'].map((key) => cache.get(key)),
      [undefined, 3],
    )
    cache.set('d', 5, 0)
    assert.equal(cache.size, 1)
  })

  it('fetches a missing value once for all callers that want it at the same time', async () => {
    const cache = new ExpiringCache<boolean>(createVirtualClock(), 10)
    let fetches = 0
    const get = (): Promise<boolean> =>
      cache.getOrFetch(
        'a',
        async () => {
          fetches++
          return false
        },
        () => 1000,
      )
    assert.deepEqual(await Promise.all([get(), get(), get()]), [false, false, false])
    assert.equal(await get(), false)
    assert.equal(fetches, 1)
  })

  it('fetches again after a fetch has failed', async () => {
    const cache = new ExpiringCache<number>(createVirtualClock(), 10)
    const fail = (): Promise<number> => {
      throw new Error('unreachable')
    }
    await assert.rejects(
      cache.getOrFetch('a', fail, () => 1000),
      /unreachable/,
    )
    assert.equal(
      await cache.getOrFetch(
        'a',
        async () => 1,
        () => 1000,
      ),
      1,
    )
  })
})
