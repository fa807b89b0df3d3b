import assert from 'node:assert/strict'
import { describe, it } from 'node:test'

import { createVirtualClock, type VirtualClock } from '#lib/clock.ts'
import type { Exchange } from '#lib/http/exchange.ts'

import { createLargeBodies, LARGE_BODY_LIMITS } from './large-bodies.ts'

const LIMITS = { ...LARGE_BODY_LIMITS, maxBytes: 100, smallBytes: 10, userBytes: 150, totalBytes: 200 }

/** An exchange that consists only of its body. */
function bodyOf(bytes: number, claims: Record<string, string> = { 'content-length': String(bytes) }): Exchange {
  const signal = new AbortController().signal
  return { version: '1.1', headers: claims, signal, readBody: () => Promise.resolve(Buffer.alloc(bytes)) } as never
}

/** Runs everything that waits only for the event loop. */
async function settle(): Promise<void> {
  for (let turns = 0; turns < 5; turns++) await new Promise(setImmediate)
}

/** `holdMs` is the time for which the receiver of the body blocks the event loop. */
function track(clock: VirtualClock): {
  readonly order: string[]
  readonly send: (user: string, exchange: Exchange, holdMs?: number) => void
} {
  let blockedMs = 0
  const bodies = createLargeBodies({ ...clock, elapsed: () => clock.elapsed() + blockedMs }, LIMITS)
  const order: string[] = []
  return {
    order,
    send(user, exchange, holdMs = 0) {
      const work = async (): Promise<void> => {
        await bodies.read(exchange, user)
        order.push(user)
        blockedMs += holdMs
      }
      void work()
    },
  }
}

describe('large request bodies', () => {
  it('do not delay small bodies', async () => {
    const { order, send } = track(createVirtualClock())
    send('a', bodyOf(90), 40)
    send('a', bodyOf(90), 40)
    send('a', bodyOf(5))
    send('b', bodyOf(0, {}))
    await settle()
    assert.deepEqual(order.filter((user) => user === 'b').length, 1)
    assert.ok(order.length >= 3)
  })

  it('are decoded one after another, with pauses three times as long as the work', async () => {
    const clock = createVirtualClock()
    const { order, send } = track(clock)
    send('a', bodyOf(50), 40)
    send('b', bodyOf(50), 0)
    await settle()
    assert.deepEqual(order, ['a'])
    await clock.advance(119)
    await settle()
    assert.deepEqual(order, ['a'])
    await clock.advance(1)
    await settle()
    assert.deepEqual(order, ['a', 'b'])
  })

  it('are decoded in rotation among users', async () => {
    const clock = createVirtualClock()
    const { order, send } = track(clock)
    for (let n = 0; n < 3; n++) send('a', bodyOf(50), 10)
    send('b', bodyOf(50), 10)
    for (let n = 0; n < 6; n++) {
      await settle()
      await clock.advance(1000)
    }
    assert.deepEqual(order, ['a', 'b', 'a', 'a'])
  })

  it('are read only after memory is reserved, with a separate share for each user', async () => {
    const clock = createVirtualClock()
    const bodies = createLargeBodies(clock, LIMITS)
    const reading: string[] = []
    const gates = new Map<string, () => void>()
    const send = (name: string, user: string): void => {
      // The body exceeds the small size, so that memory is reserved; the rest comes when the gate opens.
      const readBody: Exchange['readBody'] = async (_, growing) => {
        await growing?.mayGrow()
        reading.push(name)
        return new Promise((resolve) => gates.set(name, () => resolve(Buffer.alloc(60))))
      }
      const exchange = { ...bodyOf(0, { 'transfer-encoding': 'chunked' }), readBody }
      bodies.read(exchange, user).catch(() => undefined)
    }
    send('a1', 'a')
    send('a2', 'a')
    send('b1', 'b')
    await settle()
    assert.deepEqual(reading, ['a1', 'b1'])
    gates.get('a1')?.()
    await settle()
    await clock.advance(1000)
    await settle()
    assert.deepEqual(reading, ['a1', 'b1', 'a2'])
  })

  it('of unknown length reserve memory only once they exceed the small size', async () => {
    const bodies = createLargeBodies(createVirtualClock(), LIMITS)
    const silent = (bytes: number): Exchange => ({ ...bodyOf(bytes, {}), version: '2' })
    const sizes: number[] = []
    for (let n = 0; n < 20; n++) void bodies.read(silent(10), 'a').then(({ length }) => sizes.push(length))
    await settle()
    assert.equal(sizes.length, 20)
  })

  it('reserve only their actual size once they are complete', async () => {
    const clock = createVirtualClock()
    const bodies = createLargeBodies(clock, LIMITS)
    const arrived: string[] = []
    const send = (name: string): void => {
      const readBody: Exchange['readBody'] = async (_, growing) => {
        await growing?.mayGrow()
        arrived.push(name)
        return Buffer.alloc(20)
      }
      const exchange: Exchange = { ...bodyOf(0, {}), version: '2', readBody }
      void bodies.read(exchange, 'a').then(() => undefined)
    }
    // Each might take 100 of 150; none has had its turn yet.
    for (const name of ['first', 'second', 'third']) send(name)
    for (let microtasks = 0; microtasks < 50; microtasks++) await Promise.resolve()
    assert.deepEqual(arrived, ['first', 'second', 'third'])
  })

  it('release their memory when they are aborted', async () => {
    const bodies = createLargeBodies(createVirtualClock(), LIMITS)
    const broken = { ...bodyOf(90), readBody: () => Promise.reject(new Error('gone')) } as never
    await assert.rejects(bodies.read(broken, 'a'), /gone/)
    await settle()
    assert.equal((await bodies.read(bodyOf(90), 'a')).length, 90)
  })
})
