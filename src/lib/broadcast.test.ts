import assert from 'node:assert/strict'
import { getEventListeners } from 'node:events'
import { describe, it } from 'node:test'

import * as fc from 'fast-check'

import { createBroadcast, SlowConsumerError, type Subscription } from './broadcast.ts'

/** Everything until the end; throws what ends it. */
async function collect<T>(subscription: Subscription<T>): Promise<T[]> {
  const seen: T[] = []
  for await (const value of subscription) seen.push(value)
  return seen
}

const roomy = { capacity: 100, onFull: 'close' } as const

describe('broadcast', () => {
  it('gives every consumer all values since it subscribed, in order', async () => {
    const broadcast = createBroadcast<number>()
    const early = broadcast.subscribe(roomy)
    broadcast.publish(1)
    const late = broadcast.subscribe(roomy)
    broadcast.publish(2)
    broadcast.publish(3)
    broadcast.close()
    assert.deepEqual(await collect(early), [1, 2, 3])
    assert.deepEqual(await collect(late), [2, 3])
  })

  it('wakes a consumer that waits, and serves several waits in turn', async () => {
    const broadcast = createBroadcast<number>()
    const consumer = broadcast.subscribe({ capacity: 1, onFull: 'close' })
    const waits = [consumer.next(), consumer.next(), consumer.next()]
    broadcast.publish(1)
    broadcast.publish(2)
    broadcast.close()
    assert.deepEqual(await Promise.all(waits), [
      { done: false, value: 1 },
      { done: false, value: 2 },
      { done: true, value: undefined },
    ])
  })

  it('passes on any value, also undefined', async () => {
    const broadcast = createBroadcast<undefined>()
    const consumer = broadcast.subscribe(roomy)
    broadcast.publish(undefined)
    broadcast.publish(undefined)
    broadcast.close()
    assert.equal((await collect(consumer)).length, 2)
  })

  it('lets a slow consumer lose its oldest values, and no other', async () => {
    const broadcast = createBroadcast<number>()
    const slow = broadcast.subscribe({ capacity: 2, onFull: 'drop-oldest' })
    const roomyOne = broadcast.subscribe(roomy)
    for (let value = 1; value <= 5; value++) broadcast.publish(value)
    broadcast.close()
    assert.equal(slow.dropped, 3)
    assert.equal(roomyOne.dropped, 0)
    assert.deepEqual(await collect(slow), [4, 5])
    assert.deepEqual(await collect(roomyOne), [1, 2, 3, 4, 5])
  })

  it('ends a slow consumer that must not miss a value, after what it had, and no other', async () => {
    const broadcast = createBroadcast<number>()
    const slow = broadcast.subscribe({ capacity: 2, onFull: 'close' })
    const other = broadcast.subscribe(roomy)
    for (let value = 1; value <= 5; value++) broadcast.publish(value)
    assert.equal(broadcast.subscribers, 1)
    assert.deepEqual(await slow.next(), { done: false, value: 1 })
    assert.deepEqual(await slow.next(), { done: false, value: 2 })
    await assert.rejects(slow.next(), (error) => error instanceof SlowConsumerError && error.capacity === 2)
    assert.deepEqual(await slow.next(), { done: true, value: undefined })
    broadcast.close()
    assert.deepEqual(await collect(other), [1, 2, 3, 4, 5])
  })

  it('ends everybody with the error it is closed with, also those who come later', async () => {
    const broadcast = createBroadcast<number>()
    const consumer = broadcast.subscribe(roomy)
    broadcast.publish(1)
    broadcast.close(new Error('source is gone'))
    broadcast.close()
    broadcast.publish(2)
    assert.deepEqual(await consumer.next(), { done: false, value: 1 })
    await assert.rejects(consumer.next(), /source is gone/)
    await assert.rejects(collect(broadcast.subscribe(roomy)), /source is gone/)
    assert.equal(broadcast.subscribers, 0)
  })

  it('ends a consumer by its signal, whether it waits, has values left or comes too late', async () => {
    const broadcast = createBroadcast<number>()
    const control = new AbortController()
    const waiting = broadcast.subscribe({ ...roomy, signal: control.signal })
    const wait = waiting.next()
    const behind = broadcast.subscribe({ ...roomy, signal: control.signal })
    broadcast.publish(1)
    await wait
    const again = waiting.next()
    control.abort(new Error('enough'))
    await assert.rejects(again, /enough/)
    await assert.rejects(behind.next(), /enough/)
    assert.deepEqual(await behind.next(), { done: true, value: undefined })
    await assert.rejects(broadcast.subscribe({ ...roomy, signal: control.signal }).next(), /enough/)
    assert.equal(broadcast.subscribers, 0)
  })

  it('forgets a consumer that leaves its loop, and its listener on the signal', async () => {
    const broadcast = createBroadcast<number>()
    const { signal } = new AbortController()
    const consumer = broadcast.subscribe({ ...roomy, signal })
    broadcast.publish(1)
    broadcast.publish(2)
    for await (const value of consumer) {
      assert.equal(value, 1)
      break
    }
    assert.equal(broadcast.subscribers, 0)
    assert.equal(getEventListeners(signal, 'abort').length, 0)
    assert.deepEqual(await consumer.next(), { done: true, value: undefined })
  })

  it('forgets a consumer that is disposed of, and lets its waits go', async () => {
    const broadcast = createBroadcast<number>()
    let wait: Promise<unknown>
    {
      await using consumer = broadcast.subscribe(roomy)
      wait = consumer.next()
    }
    assert.deepEqual(await wait, { done: true, value: undefined })
    assert.equal(broadcast.subscribers, 0)
  })

  it('refuses a capacity of nothing', () => {
    assert.throws(() => createBroadcast().subscribe({ capacity: 0, onFull: 'close' }), /at least 1, got "0"/)
  })

  it('keeps the newest values up to its capacity, however publishing and taking mix', async () => {
    const steps = fc.array(fc.constantFrom('publish', 'take'), { maxLength: 100, size: 'max' })
    await fc.assert(
      fc.asyncProperty(steps, fc.integer({ min: 1, max: 8 }), async (acts, capacity) => {
        const broadcast = createBroadcast<number>()
        const consumer = broadcast.subscribe({ capacity, onFull: 'drop-oldest' })
        const model: number[] = []
        let next = 0
        for (const act of acts) {
          if (act === 'publish') {
            broadcast.publish(next)
            model.push(next++)
            if (model.length > capacity) model.shift()
          } else if (model.length > 0) {
            assert.deepEqual(await consumer.next(), { done: false, value: model.shift() })
          }
        }
        broadcast.close()
        assert.deepEqual(await collect(consumer), model)
      }),
    )
  })
})
