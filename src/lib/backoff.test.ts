import assert from 'node:assert/strict'
import { describe, it } from 'node:test'

import * as fc from 'fast-check'

import {
  createBackoff,
  createControllerRateLimiter,
  createItemBackoff,
  createTokenBucket,
  exponentialDelayMs,
  jitteredMs,
  maxOf,
} from './backoff.ts'
import { createVirtualClock } from './clock.ts'
import { createSeededRandom } from './random.ts'

describe('exponential delay', () => {
  it('grows by the factor up to the cap, and never overflows', () => {
    const policy = { baseMs: 100, factor: 3, capMs: 5000 }
    assert.deepEqual(
      [0, 1, 2, 3, 4, 5].map((attempt) => exponentialDelayMs(policy, attempt)),
      [100, 300, 900, 2700, 5000, 5000],
    )
    assert.equal(exponentialDelayMs(policy, 1e9), 5000)
  })

  it('never shrinks from one attempt to the next and never passes the cap', () => {
    const policies = fc.record({
      baseMs: fc.integer({ min: 1, max: 1000 }),
      factor: fc.double({ min: 1, max: 10, noNaN: true }),
      capMs: fc.integer({ min: 1, max: 1_000_000 }),
    })
    fc.assert(
      fc.property(policies, fc.nat(2000), (policy, attempt) => {
        const delay = exponentialDelayMs(policy, attempt)
        assert.ok(delay <= policy.capMs)
        assert.ok(delay <= exponentialDelayMs(policy, attempt + 1))
      }),
    )
  })

  it('adds at most the fraction of jitter', () => {
    fc.assert(
      fc.property(
        fc.integer(),
        fc.nat(100_000),
        fc.double({ min: 0, max: 4, noNaN: true }),
        (seed, delayMs, fraction) => {
          const delay = jitteredMs(createSeededRandom(seed), delayMs, fraction)
          assert.ok(delay >= delayMs && delay <= delayMs * (1 + fraction))
        },
      ),
    )
  })
})

describe('backoff with a seed', () => {
  const policy = { baseMs: 1000, capMs: 30_000, jitter: 0.5 }

  it('gives the same delays for the same seed', () => {
    const run = (seed: number): number[] => {
      const backoff = createBackoff(createSeededRandom(seed), policy)
      return Array.from({ length: 10 }, () => backoff.next())
    }
    assert.deepEqual(run(7), run(7))
    assert.notDeepEqual(run(7), run(8))
  })

  it('starts again after reset()', () => {
    const backoff = createBackoff(createSeededRandom(1), { ...policy, jitter: 0 })
    assert.deepEqual([backoff.next(), backoff.next(), backoff.next()], [1000, 2000, 4000])
    assert.equal(backoff.attempts, 3)
    backoff.reset()
    assert.equal(backoff.attempts, 0)
    assert.equal(backoff.next(), 1000)
  })
})

describe('item backoff', () => {
  it('doubles for each failure of one item, from 5 ms to 1000 s, and does not affect other items', () => {
    const limiter = createItemBackoff<string>()
    assert.deepEqual(
      Array.from({ length: 5 }, () => limiter.when('a')),
      [5, 10, 20, 40, 80],
    )
    assert.equal(limiter.when('b'), 5)
    assert.equal(limiter.numRequeues('a'), 5)
    assert.equal(limiter.numRequeues('never seen'), 0)
    for (let left = 2000; left > 0; left--) limiter.when('a')
    assert.equal(limiter.when('a'), 1_000_000)
    limiter.forget('a')
    assert.equal(limiter.numRequeues('a'), 0)
    assert.equal(limiter.when('a'), 5)
  })
})

describe('token bucket', () => {
  it('allows a burst, then one take per new token', async () => {
    const clock = createVirtualClock()
    const bucket = createTokenBucket<string>(clock, { qps: 10, burst: 3 })
    assert.deepEqual(
      Array.from({ length: 6 }, () => bucket.when('x')),
      [0, 0, 0, 100, 200, 300],
    )
    await clock.advance(300)
    assert.equal(bucket.when('x'), 100)
    assert.equal(bucket.numRequeues('x'), 0)
  })

  it('never has more tokens than its burst', async () => {
    const clock = createVirtualClock()
    const bucket = createTokenBucket<string>(clock, { qps: 10, burst: 2 })
    await clock.advance(3_600_000)
    assert.deepEqual(
      Array.from({ length: 3 }, () => bucket.when('x')),
      [0, 0, 100],
    )
  })

  it('gives tryTake() only tokens that are available now', async () => {
    const clock = createVirtualClock()
    const bucket = createTokenBucket<string>(clock, { qps: 10, burst: 2 })
    assert.deepEqual(Array.from({ length: 9 }, () => bucket.tryTake()).filter(Boolean), [true, true])
    await clock.advance(100)
    assert.equal(bucket.tryTake(), true)
  })
})

describe('the controller rate limiter', () => {
  it('is the longer of item backoff and bucket', () => {
    const limiter = createControllerRateLimiter<number>(createVirtualClock())
    for (let item = 0; item < 100; item++) assert.equal(limiter.when(item), 5)
    assert.equal(limiter.when(1000), 100)
    for (let tries = 0; tries < 12; tries++) limiter.when(7)
    assert.equal(limiter.when(7), 5 * 2 ** 13)
    assert.equal(limiter.numRequeues(7), 14)
    limiter.forget(7)
    assert.equal(limiter.numRequeues(7), 0)
  })

  it('does not wait without limiters', () => {
    assert.equal(maxOf<string>().when('a'), 0)
    assert.equal(maxOf<string>().numRequeues('a'), 0)
  })
})
