import assert from 'node:assert/strict'
import { once } from 'node:events'
import { describe, it } from 'node:test'
import { Worker } from 'node:worker_threads'

import { createVirtualClock, every, realClock, sleep } from './clock.ts'
import { createSeededRandom } from './random.ts'

const DAY_MS = 24 * 60 * 60 * 1000

describe('virtual clock', () => {
  it('runs ten thousand timers of a day in the same order twice', async () => {
    const run = async (): Promise<string[]> => {
      const clock = createVirtualClock()
      const random = createSeededRandom(42)
      const order: string[] = []
      const rearm = (id: number): void => {
        clock.after(random.int(DAY_MS), () => {
          order.push(`${id}@${clock.now()}`)
          if (random.int(4) === 0) rearm(id)
        })
      }
      for (let id = 0; id < 10_000; id++) rearm(id)
      await clock.advance(DAY_MS)
      return order
    }
    const first = await run()
    const second = await run()
    assert.ok(first.length >= 10_000)
    assert.deepEqual(second, first)
  })

  it('runs timers in order of due time, then of arrival, at exactly their due time', async () => {
    const clock = createVirtualClock(1000)
    const seen: [string, number][] = []
    const note = (name: string) => (): void => void seen.push([name, clock.now()])
    clock.after(20, note('late'))
    clock.after(10, note('first'))
    clock.after(10, note('second'))
    clock.after(-5, note('at once'))
    await clock.advance(15)
    assert.deepEqual(seen, [
      ['at once', 1000],
      ['first', 1010],
      ['second', 1010],
    ])
    assert.equal(clock.now(), 1015)
    await clock.advance(5)
    assert.deepEqual(seen.at(-1), ['late', 1020])
  })

  it('runs timers that are set meanwhile, and promise chains between two timers', async () => {
    const clock = createVirtualClock(0)
    const seen: number[] = []
    const loop = async (): Promise<void> => {
      for (let round = 0; round < 5; round++) {
        await sleep(clock, 10)
        await Promise.resolve().then(() => undefined)
        seen.push(clock.now())
      }
    }
    const done = loop()
    await clock.advance(50)
    await done
    assert.deepEqual(seen, [10, 20, 30, 40, 50])
  })

  it('forgets a cancelled timer', async () => {
    const clock = createVirtualClock()
    const timer = clock.after(10, () => assert.fail('ran'))
    assert.equal(clock.pending, 1)
    timer.cancel()
    timer.cancel()
    assert.equal(clock.pending, 0)
    await clock.advance(20)
    assert.equal(await clock.next(), false)
  })

  it('next() jumps to the next timer', async () => {
    const clock = createVirtualClock(0)
    clock.after(DAY_MS, () => undefined)
    assert.equal(await clock.next(), true)
    assert.equal(clock.now(), DAY_MS)
    assert.equal(clock.elapsed(), DAY_MS)
  })
})

describe('every() of a clock', () => {
  it('repeats until cancelled, even when the task cancels it', async () => {
    const clock = createVirtualClock(0)
    const seen: number[] = []
    const timer = every(clock, 10, () => {
      seen.push(clock.now())
      if (seen.length === 3) timer.cancel()
    })
    await clock.advance(100)
    assert.deepEqual(seen, [10, 20, 30])
    assert.equal(clock.pending, 0)
  })
})

describe('sleep() of a clock', () => {
  it('rejects with the reason of the signal and leaves no timer', async () => {
    const clock = createVirtualClock()
    const control = new AbortController()
    const asleep = sleep(clock, 1000, control.signal)
    control.abort(new Error('enough'))
    await assert.rejects(asleep, /enough/)
    assert.equal(clock.pending, 0)
    await assert.rejects(sleep(clock, 1, control.signal), /enough/)
  })
})

describe('real clock', () => {
  it('runs a timer, and never too early if its delay exceeds the range of setTimeout', async () => {
    const far = realClock.after(60 * DAY_MS, () => assert.fail('ran'), { background: true })
    await sleep(realClock, 5)
    far.cancel()
  })
})

describe('virtual time', () => {
  it('advances only when the event loop is idle', async () => {
    const clock = createVirtualClock(0)
    const seen: string[] = []
    const turns = (left: number): void => {
      if (left === 0) return void seen.push(`turns over at ${clock.now()}`)
      setImmediate(() => turns(left - 1))
    }
    clock.after(10, () => turns(50))
    clock.after(20, () => seen.push(`next at ${clock.now()}`))
    await clock.advance(20)
    assert.deepEqual(seen, ['turns over at 10', 'next at 20'])
  })

  it('advances only after workers have answered and their results are processed', async () => {
    const clock = createVirtualClock(0)
    const seen: string[] = []
    const ask = async (): Promise<void> => {
      const worker = new Worker('require("node:worker_threads").parentPort.postMessage("done")', { eval: true })
      // Listens now, because the worker may have exited before its message is processed.
      const [answer, exit] = [clock.during(once(worker, 'message')), once(worker, 'exit')]
      seen.push(`${String(((await answer) as unknown[])[0])} at ${clock.now()}`)
      await clock.during(exit)
      seen.push(`ended at ${clock.now()}`)
    }
    clock.after(10, () => void ask())
    clock.after(11, () => seen.push(`next at ${clock.now()}`))
    await clock.advance(20)
    assert.deepEqual(seen, ['done at 10', 'ended at 10', 'next at 11'])
  })

  it('advances past failed work, and past work that waits for time', async () => {
    const clock = createVirtualClock(0)
    await assert.rejects(clock.during(Promise.reject(new Error('no'))), /no/)
    const there = Promise.withResolvers<void>()
    const look = (): void => {
      if (clock.now() < 5) setImmediate(look)
      else there.resolve()
    }
    look()
    await clock.advance(5)
    await there.promise
  })
})
