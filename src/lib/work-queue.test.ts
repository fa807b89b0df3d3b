import assert from 'node:assert/strict'
import { getEventListeners } from 'node:events'
import { describe, it } from 'node:test'

import * as fc from 'fast-check'

import { createItemBackoff } from './backoff.ts'
import { createVirtualClock, sleep, type VirtualClock } from './clock.ts'
import { createRegistry } from './metrics/metrics.ts'
import { registerWorkQueueMetrics } from './metrics/work-queue.ts'
import { createSeededRandom } from './random.ts'
import { WorkQueue } from './work-queue.ts'

function create(): { clock: VirtualClock; queue: WorkQueue<string> } {
  const clock = createVirtualClock()
  return { clock, queue: new WorkQueue<string>({ clock, rateLimiter: createItemBackoff() }) }
}

/** Takes every key that is ready, marking each done. */
async function drain(queue: WorkQueue<string>): Promise<string[]> {
  const keys: string[] = []
  while (queue.size > 0) {
    const key = (await queue.get())!
    keys.push(key)
    queue.done(key)
  }
  return keys
}

describe('WorkQueue', () => {
  it('returns keys in the order of their addition', async () => {
    const { queue } = create()
    for (const key of ['c', 'a', 'b']) queue.add(key)
    assert.deepEqual(await drain(queue), ['c', 'a', 'b'])
  })

  it('returns a key once, however often it was added', async () => {
    const { queue } = create()
    for (const key of ['a', 'b', 'a', 'a']) queue.add(key)
    assert.equal(queue.size, 2)
    assert.deepEqual(await drain(queue), ['a', 'b'])
  })

  it('returns a key again that was added while it was processing', async () => {
    const { queue } = create()
    queue.add('a')
    assert.equal(await queue.get(), 'a')
    queue.add('a')
    queue.add('a')
    assert.equal(queue.size, 0)
    queue.done('a')
    assert.deepEqual(await drain(queue), ['a'])
  })

  it('ignores done() for a key that is not being processed', async () => {
    const { queue } = create()
    queue.add('a')
    queue.done('a')
    queue.done('b')
    assert.deepEqual(await drain(queue), ['a'])
  })

  it('wakes waiting workers in order', async () => {
    const { queue } = create()
    const first = queue.get()
    const second = queue.get()
    queue.add('a')
    queue.add('b')
    assert.deepEqual(await Promise.all([first, second]), ['a', 'b'])
  })

  it('ends a wait when its signal is aborted, without losing a key', async () => {
    const { queue } = create()
    const control = new AbortController()
    const waiting = queue.get(control.signal)
    control.abort(new Error('enough'))
    await assert.rejects(waiting, /enough/)
    await assert.rejects(queue.get(control.signal), /enough/)
    queue.add('a')
    assert.equal(await queue.get(), 'a')
  })

  it('leaves no listener on the signal after a key was taken', async () => {
    const { queue } = create()
    const { signal } = new AbortController()
    for (let round = 0; round < 20; round++) {
      const waiting = queue.get(signal)
      queue.add('a')
      queue.done((await waiting)!)
    }
    assert.equal(getEventListeners(signal, 'abort').length, 0)
  })

  it('never returns a key to two workers and never loses an added key', async () => {
    const act = fc.oneof(
      fc.record({ add: fc.constantFrom('a', 'b', 'c', 'd') }),
      fc.record({ take: fc.constant(true) }),
      fc.record({ done: fc.nat(3) }),
    )
    await fc.assert(
      fc.asyncProperty(fc.array(act, { maxLength: 100, size: 'max' }), async (acts) => {
        const { queue } = create()
        const working: string[] = []
        const owed = new Set<string>()
        const take = async (): Promise<void> => {
          const key = (await queue.get())!
          assert.ok(!working.includes(key), `${key} given twice`)
          assert.ok(owed.delete(key), `${key} given without need`)
          working.push(key)
        }
        for (const step of acts) {
          if ('add' in step) {
            queue.add(step.add)
            owed.add(step.add)
          } else if ('take' in step) {
            if (queue.size > 0) await take()
          } else {
            const [key] = working.splice(step.done, 1)
            if (key !== undefined) queue.done(key)
          }
        }
        for (const key of working.splice(0)) queue.done(key)
        while (queue.size > 0) {
          await take()
          queue.done(working.pop()!)
        }
        assert.equal(owed.size, 0)
      }),
    )
  })
})

describe('WorkQueue with delayed keys', () => {
  it('returns a key after a fractional delay', { timeout: 10_000 }, async () => {
    const { clock, queue } = create()
    await clock.advance(0.3)
    queue.addAfter('a', 0.1 + 0.2)
    await clock.advance(10)
    assert.deepEqual(await drain(queue), ['a'])
  })

  it('returns keys in the order of their due times', async () => {
    const { clock, queue } = create()
    queue.addAfter('later', 200)
    queue.addAfter('sooner', 100)
    queue.addAfter('now', 0)
    assert.deepEqual(await drain(queue), ['now'])
    await clock.advance(99)
    assert.equal(queue.size, 0)
    await clock.advance(1)
    assert.deepEqual(await drain(queue), ['sooner'])
    await clock.advance(100)
    assert.deepEqual(await drain(queue), ['later'])
    assert.equal(clock.pending, 0)
  })

  it('merges several delays of one key, and the earliest wins', async () => {
    for (const delays of [
      [50, 100, 200],
      [200, 50, 100],
      [100, 200, 50],
    ]) {
      const { clock, queue } = create()
      for (const delay of delays) queue.addAfter('a', delay)
      await clock.advance(50)
      assert.deepEqual(await drain(queue), ['a'])
      await clock.advance(1000)
      assert.equal(queue.size, 0)
    }
  })

  it('uses one timer for all keys', async () => {
    const { clock, queue } = create()
    const random = createSeededRandom(1)
    for (let key = 0; key < 1000; key++) queue.addAfter(`key-${key}`, 1 + random.int(1000))
    assert.equal(clock.pending, 1)
    await clock.advance(1000)
    assert.equal(queue.size, 1000)
    assert.equal(clock.pending, 0)
  })

  it('delays retries by the rate limiter until the key is forgotten', async () => {
    const { clock, queue } = create()
    for (const delay of [5, 10, 20]) {
      queue.addRateLimited('a')
      await clock.advance(delay - 1)
      assert.equal(queue.size, 0)
      await clock.advance(1)
      assert.deepEqual(await drain(queue), ['a'])
    }
    assert.equal(queue.numRequeues('a'), 3)
    queue.forget('a')
    assert.equal(queue.numRequeues('a'), 0)
    queue.addRateLimited('a')
    await clock.advance(5)
    assert.equal(queue.size, 1)
  })

  it('delays a first failure by 5 ms by default', async () => {
    const clock = createVirtualClock()
    const queue = new WorkQueue<string>({ clock })
    queue.addRateLimited('a')
    await clock.advance(5)
    assert.equal(queue.size, 1)
  })
})

describe('shutDown() of a WorkQueue', () => {
  it('accepts no more keys, returns the ready ones, and then ends every get', async () => {
    const { clock, queue } = create()
    queue.add('a')
    queue.addAfter('delayed', 10)
    queue.shutDown()
    assert.equal(queue.shuttingDown, true)
    assert.equal(clock.pending, 0)
    queue.add('b')
    queue.addAfter('c', 0)
    assert.equal(await queue.get(), 'a')
    assert.equal(await queue.get(), undefined)
    queue.shutDown()
  })

  it('wakes waiting workers', async () => {
    const { queue } = create()
    const waiting = [queue.get(), queue.get()]
    queue.shutDown()
    assert.deepEqual(await Promise.all(waiting), [undefined, undefined])
  })

  it('with drain waits for ready keys and keys in processing', async () => {
    const { queue } = create()
    queue.add('a')
    queue.add('b')
    const key = (await queue.get())!
    queue.add('a')
    let drained = false
    const draining = queue.shutDownWithDrain().then(() => (drained = true))
    queue.done(key)
    assert.equal(await queue.get(), 'b')
    queue.done('b')
    assert.equal(await queue.get(), 'a')
    await Promise.resolve()
    assert.equal(drained, false)
    queue.done('a')
    await draining
    assert.equal(await queue.get(), undefined)
  })

  it('with drain resolves at once if there are no keys', async () => {
    await create().queue.shutDownWithDrain()
  })

  it('with drain stops waiting when shutDown() is called or the signal is aborted', async () => {
    const { queue } = create()
    queue.add('stuck')
    await queue.get()
    const draining = queue.shutDownWithDrain()
    const aborted = queue.shutDownWithDrain(AbortSignal.abort(new Error('enough')))
    await assert.rejects(aborted, /enough/)
    queue.shutDown()
    await draining
  })
})

describe('workers of a WorkQueue', () => {
  const never = (error: unknown): void => assert.fail(String(error))

  it('process as many keys concurrently as configured, and never one key twice at a time', async () => {
    const { clock, queue } = create()
    const control = new AbortController()
    const active = new Set<string>()
    let most = 0
    let handled = 0
    const running = queue.run({
      workers: 3,
      signal: control.signal,
      async handle(key) {
        assert.ok(!active.has(key))
        active.add(key)
        most = Math.max(most, active.size)
        await sleep(clock, 10)
        active.delete(key)
        handled++
      },
      onError: never,
    })
    for (let key = 0; key < 10; key++) queue.add(`key-${key}`)
    queue.add('key-0')
    await clock.advance(100)
    assert.equal(most, 3)
    // A waiting worker took key-0 before it was added again, so it is worked on twice.
    assert.equal(handled, 11)
    control.abort()
    await running
  })

  it('retry failed keys with rate limiting, and forget failures after a success', async () => {
    const { clock, queue } = create()
    const control = new AbortController()
    const at: number[] = []
    const errors: string[] = []
    const running = queue.run({
      workers: 1,
      signal: control.signal,
      async handle() {
        at.push(clock.elapsed())
        if (at.length < 4) throw new Error(`failure ${at.length}`)
      },
      onError: (error, key) => void errors.push(`${key}: ${(error as Error).message}`),
    })
    queue.add('a')
    await clock.advance(1000)
    assert.deepEqual(at, [0, 5, 15, 35])
    assert.deepEqual(errors, ['a: failure 1', 'a: failure 2', 'a: failure 3'])
    assert.equal(queue.numRequeues('a'), 0)
    control.abort()
    await running
  })

  it('requeue a key when the handler requests it', async () => {
    const { clock, queue } = create()
    const control = new AbortController()
    const at: number[] = []
    const running = queue.run({
      workers: 1,
      signal: control.signal,
      handle: async () => (at.push(clock.elapsed()) < 3 ? { requeueAfterMs: 100 } : undefined),
      onError: never,
    })
    queue.add('a')
    await clock.advance(1000)
    assert.deepEqual(at, [0, 100, 200])
    control.abort()
    await running
  })

  it('end on abort without processing waiting keys or reporting failures', async () => {
    const { clock, queue } = create()
    const control = new AbortController()
    const handled: string[] = []
    const running = queue.run({
      workers: 1,
      signal: control.signal,
      async handle(key, signal) {
        handled.push(key)
        await sleep(clock, 1000, signal)
      },
      onError: never,
    })
    queue.add('a')
    queue.add('b')
    await clock.advance(10)
    control.abort(new Error('stop'))
    await running
    assert.deepEqual(handled, ['a'])
    assert.equal(clock.pending, 0)
    assert.equal(queue.shuttingDown, true)
  })

  it('do not start if the signal is already aborted', async () => {
    const { queue } = create()
    queue.add('a')
    await queue.run({ workers: 2, signal: AbortSignal.abort(), handle: () => assert.fail('ran'), onError: never })
  })

  it('finish everything if the queue is shut down with drain', async () => {
    const { clock, queue } = create()
    const handled: string[] = []
    const running = queue.run({
      workers: 2,
      signal: new AbortController().signal,
      async handle(key) {
        await sleep(clock, 10)
        handled.push(key)
      },
      onError: never,
    })
    for (const key of ['a', 'b', 'c', 'd', 'e']) queue.add(key)
    const drained = queue.shutDownWithDrain()
    await clock.advance(30)
    await drained
    await running
    assert.equal(handled.length, 5)
  })

  it('end if the error callback throws', async () => {
    const { queue } = create()
    const running = queue.run({
      workers: 3,
      signal: new AbortController().signal,
      handle: () => Promise.reject(new Error('failure')),
      onError() {
        throw new Error('cannot report')
      },
    })
    queue.add('a')
    await assert.rejects(running, /cannot report/)
    assert.equal(queue.shuttingDown, true)
  })

  it('yield to the event loop even if no handler waits', async () => {
    const clock = createVirtualClock()
    // Time that passes by being looked at stands for handlers that compute.
    let now = 0
    const queue = new WorkQueue<number>({ clock: { ...clock, elapsed: () => now++ } })
    let turns = 0
    let over = false
    const tick = (): void => {
      turns++
      if (!over) setImmediate(tick)
    }
    setImmediate(tick)
    for (let key = 0; key < 1000; key++) queue.add(key)
    const drained = queue.shutDownWithDrain()
    await queue.run({
      workers: 4,
      signal: new AbortController().signal,
      handle: () => Promise.resolve(),
      onError: never,
    })
    await drained
    over = true
    assert.ok(turns > 50, `${turns} turns`)
  })
})

describe('metrics of a WorkQueue', () => {
  it("have upstream's names: depth, durations, retries and unfinished work", async () => {
    const clock = createVirtualClock()
    const registry = createRegistry()
    const queue = new WorkQueue<string>({ clock, metrics: registerWorkQueueMetrics(registry)('pods') })
    queue.add('a')
    queue.add('a')
    queue.add('b')
    queue.addAfter('c', 60_000)
    await clock.advance(2000)
    await queue.get()
    await clock.advance(3000)
    const text = registry.render()
    const has = (line: string): void => assert.ok(text.includes(`${line}\n`), `${line} is not in\n${text}`)
    has('# HELP workqueue_depth [BETA] Current depth of workqueue')
    has('workqueue_depth{name="pods"} 1')
    has('workqueue_adds_total{name="pods"} 2')
    has('workqueue_retries_total{name="pods"} 1')
    has('workqueue_queue_duration_seconds_sum{name="pods"} 2')
    has('workqueue_queue_duration_seconds_bucket{name="pods",le="9.999999999999999e-06"} 0')
    has('workqueue_work_duration_seconds_count{name="pods"} 0')
    has('workqueue_unfinished_work_seconds{name="pods"} 3')
    has('workqueue_longest_running_processor_seconds{name="pods"} 3')
    queue.done('a')
    assert.match(registry.render(), /^workqueue_work_duration_seconds_sum\{name="pods"\} 3$/m)
    assert.match(registry.render(), /^workqueue_unfinished_work_seconds\{name="pods"\} 0$/m)
    queue.shutDown()
  })
})
