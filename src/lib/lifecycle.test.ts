import assert from 'node:assert/strict'
import { getEventListeners } from 'node:events'
import { describe, it } from 'node:test'

import { createVirtualClock, sleep, type VirtualClock } from './clock.ts'
import { type Component, createLifecycle, type Lifecycle, type LifecycleOptions } from './lifecycle.ts'

interface Stage {
  readonly clock: VirtualClock
  readonly seen: string[]
  readonly lifecycle: Lifecycle
  /** A component that tells what happens to it; `changes` make it misbehave. */
  readonly component: (name: string, changes?: Partial<Component>) => Component
}

function stage(options: Partial<LifecycleOptions> = {}): Stage {
  const clock = createVirtualClock()
  const seen: string[] = []
  const component = (name: string, changes: Partial<Component> = {}): Component => ({
    name,
    start: () => void seen.push(`start ${name}`),
    stop: () => void seen.push(`stop ${name}`),
    ...changes,
  })
  return { clock, seen, component, lifecycle: createLifecycle({ clock, ...options }) }
}

const fail = (message: string) => (): Promise<void> => Promise.reject(new Error(message))
const forever = (): Promise<void> => new Promise(() => undefined)

describe('lifecycle', () => {
  it('starts components in order, each when the one before is ready, and stops them in reverse', async () => {
    const { clock, component, lifecycle, seen } = stage()
    const slow = component('b', {
      async start() {
        await sleep(clock, 10)
        seen.push('start b')
      },
      async stop() {
        await sleep(clock, 10)
        seen.push('stop b')
      },
    })
    const starting = lifecycle.start([component('a'), slow, component('c')])
    await clock.advance(10)
    await starting
    assert.deepEqual(seen.splice(0), ['start a', 'start b', 'start c'])
    const stopping = lifecycle.stop()
    await clock.advance(10)
    await stopping
    assert.deepEqual(seen, ['stop c', 'stop b', 'stop a'])
    assert.equal(clock.pending, 0)
  })

  it('stops what `await using` leaves behind', async () => {
    const { clock, component, seen } = stage()
    {
      await using lifecycle = createLifecycle({ clock })
      await lifecycle.start([component('a'), { name: 'no stop', start: () => undefined }])
    }
    assert.deepEqual(seen, ['start a', 'stop a'])
  })

  it('stops once however often it is told to', async () => {
    const { component, lifecycle, seen } = stage()
    await lifecycle.start([component('a')])
    assert.equal(lifecycle.stop(), lifecycle.stop())
    await lifecycle.stop()
    await lifecycle.ended
    assert.deepEqual(seen, ['start a', 'stop a'])
  })

  it('stops when the signal it was given is aborted, and listens to it no longer', async () => {
    const control = new AbortController()
    const { component, lifecycle, seen } = stage({ signal: control.signal })
    await lifecycle.start([component('a')])
    control.abort(new Error('SIGTERM'))
    await lifecycle.ended
    assert.deepEqual(seen, ['start a', 'stop a'])
    const other = new AbortController()
    await stage({ signal: other.signal }).lifecycle.stop()
    assert.equal(getEventListeners(other.signal, 'abort').length, 0)
  })

  it('starts nothing when that signal is aborted already', async () => {
    const { component, lifecycle, seen } = stage({ signal: AbortSignal.abort(new Error('too late')) })
    await assert.rejects(lifecycle.start([component('a')]), /Component "a" did not start: too late/)
    assert.deepEqual(seen, [])
  })

  it('aborts its own signal at once, and that of a component when it is its turn', async () => {
    const { lifecycle, seen } = stage()
    const signals = new Map<string, AbortSignal>()
    const watched = (name: string): Component => ({
      name,
      start: (signal) => void signals.set(name, signal),
      stop: () => void seen.push(`${name}: ${['a', 'b'].map((each) => signals.get(each)?.aborted).join(' ')}`),
    })
    await lifecycle.start([watched('a'), watched('b')])
    const stopping = lifecycle.stop()
    assert.equal(lifecycle.signal.aborted, true)
    await stopping
    assert.deepEqual(seen, ['b: false true', 'a: true true'])
  })
})

describe('a failing start', () => {
  it('stops what was started, in reverse, and names the component and the cause', async () => {
    const { component, lifecycle, seen } = stage()
    const cause = new Error('port is taken')
    const broken = component('c', { start: () => Promise.reject(cause) })
    await assert.rejects(lifecycle.start([component('a'), component('b'), broken, component('d')]), (error) => {
      assert.ok(error instanceof Error)
      assert.equal(error.message, 'Component "c" did not start: port is taken')
      assert.equal(error.cause, cause)
      return true
    })
    assert.deepEqual(seen, ['start a', 'start b', 'stop b', 'stop a'])
    await lifecycle.ended
  })

  it('is reported with the failures of stopping beside it', async () => {
    const { component, lifecycle } = stage()
    const throwing = component('b', {
      start() {
        throw new Error('no')
      },
    })
    await assert.rejects(lifecycle.start([component('a', { stop: fail('stuck') }), throwing]), (error) => {
      assert.ok(error instanceof AggregateError)
      assert.equal(error.message, 'Component "b" did not start: no')
      assert.deepEqual(
        error.errors.map((each: Error) => each.message),
        ['no', '"a" failed to stop: stuck'],
      )
      return true
    })
  })

  it('is what a start during another is', async () => {
    const { clock, component, lifecycle } = stage()
    const first = lifecycle.start([component('a', { start: (signal) => sleep(clock, 10, signal) })])
    const failed = assert.rejects(first, /Component "a" did not start: Stopped/)
    await assert.rejects(lifecycle.start([component('b')]), /Component "b" did not start: Another start is under way/)
    await failed
  })

  it('is what a start after the end is', async () => {
    const { component, lifecycle } = stage()
    await lifecycle.stop()
    await assert.rejects(lifecycle.start([component('a')]), /did not start: Stopped/)
  })
})

describe('stopping in the middle of a start', () => {
  it('tells the component, waits for it, and starts no other', async () => {
    const { clock, component, lifecycle, seen } = stage()
    const slow = component('b', { start: (signal) => sleep(clock, 1000, signal) })
    const starting = lifecycle.start([component('a'), slow, component('c')])
    const rejected = assert.rejects(starting, /Component "b" did not start: Stopped/)
    await clock.advance(10)
    await lifecycle.stop()
    await rejected
    assert.deepEqual(seen, ['start a', 'stop a'])
    assert.equal(clock.pending, 0)
  })

  it('stops also a component that started in spite of it', async () => {
    const { clock, component, lifecycle, seen } = stage()
    const deaf = component('b', { start: () => sleep(clock, 100) })
    const rejected = assert.rejects(lifecycle.start([component('a'), deaf]), /Component "b" did not start: Stopped/)
    await clock.advance(10)
    const stopping = lifecycle.stop()
    await clock.advance(90)
    await stopping
    await rejected
    assert.deepEqual(seen, ['start a', 'stop b', 'stop a'])
  })

  it('stops a component that comes up after the grace time', async () => {
    const { clock, component, lifecycle, seen } = stage({ graceMs: 50 })
    const deaf = component('b', { start: () => sleep(clock, 100) })
    const rejected = assert.rejects(lifecycle.start([deaf]), /Component "b" did not start/)
    await clock.advance(1)
    const stopping = assert.rejects(lifecycle.stop(), /"b" did not stop within 50 ms/)
    await clock.advance(50)
    await stopping
    await clock.advance(50)
    await rejected
    assert.deepEqual(seen, ['stop b'])
  })
})

describe('a failing stop', () => {
  it('does not keep the others from stopping, and every error is collected', async () => {
    const { component, lifecycle, seen } = stage()
    const broken = (name: string): Component => component(name, { stop: fail(`${name} is stuck`) })
    await lifecycle.start([broken('a'), component('b'), broken('c')])
    await assert.rejects(lifecycle.stop(), (error) => {
      assert.ok(error instanceof AggregateError)
      assert.deepEqual(
        error.errors.map((each: Error) => each.message),
        ['"c" failed to stop: c is stuck', '"a" failed to stop: a is stuck'],
      )
      return true
    })
    await assert.rejects(lifecycle.ended, AggregateError)
    assert.ok(seen.includes('stop b'))
  })

  it('that takes too long is given up after the grace time, and the rest still stopped', async () => {
    const { clock, component, lifecycle, seen } = stage({ graceMs: 5000 })
    await lifecycle.start([component('a'), component('b', { stop: forever }), component('c', { stop: forever })])
    const stopping = assert.rejects(lifecycle.stop(), (error) => {
      assert.ok(error instanceof AggregateError)
      assert.deepEqual(
        error.errors.map((each: Error) => each.message),
        ['"c" did not stop within 5000 ms', '"b" did not stop within 5000 ms'],
      )
      return true
    })
    await clock.advance(5000)
    await stopping
    assert.deepEqual(seen.at(-1), 'stop a')
  })
})

describe('owned tasks', () => {
  it('are told to end in reverse order with the components, and waited for', async () => {
    const { clock, component, lifecycle, seen } = stage()
    const loop = (name: string) => async (signal: AbortSignal) => {
      await sleep(clock, 1e9, signal).catch(() => undefined)
      await sleep(clock, 10)
      seen.push(`end ${name}`)
    }
    await lifecycle.start([component('a')])
    lifecycle.own('first', loop('first'))
    await lifecycle.start([component('b')])
    lifecycle.own('second', loop('second'))
    const stopping = lifecycle.stop()
    await clock.advance(100)
    await stopping
    assert.deepEqual(seen.slice(2), ['end second', 'stop b', 'end first', 'stop a'])
  })

  it('that fail stop everything, and their error is how it ended', async () => {
    const { clock, component, lifecycle, seen } = stage()
    const broken = new Error('lost the lease')
    await lifecycle.start([component('a')])
    lifecycle.own(
      'lease',
      sleep(clock, 10).then(() => Promise.reject(broken)),
    )
    await clock.advance(10)
    await assert.rejects(lifecycle.ended, (error) => error === broken)
    await assert.rejects(lifecycle.stop(), (error) => error === broken)
    assert.equal(lifecycle.signal.reason, broken)
    assert.deepEqual(seen, ['start a', 'stop a'])
  })

  it('that fail during a start make it fail', async () => {
    const { clock, component, lifecycle } = stage()
    lifecycle.own('task', fail('broken'))
    const slow = component('a', { start: (signal) => sleep(clock, 1000, signal) })
    await assert.rejects(lifecycle.start([slow]), (error) => {
      assert.ok(error instanceof Error && !(error instanceof AggregateError))
      assert.equal(error.message, 'Component "a" did not start: broken')
      return true
    })
  })

  it('that end well are forgotten', async () => {
    const { lifecycle } = stage()
    lifecycle.own('quick', Promise.resolve(1))
    await Promise.resolve()
    assert.equal(lifecycle.signal.aborted, false)
    await lifecycle.stop()
  })

  it('that end because they were told to have not failed, however they say it', async () => {
    const { clock, lifecycle } = stage()
    lifecycle.own('reason', (signal) => sleep(clock, 1e9, signal))
    lifecycle.own('wrapped', (signal) =>
      sleep(clock, 1e9, signal).catch((cause: unknown) => Promise.reject(new Error('Gave up', { cause }))),
    )
    lifecycle.own('shared', sleep(clock, 1e9, lifecycle.signal))
    lifecycle.own('platform', (signal) =>
      sleep(clock, 1e9, signal).catch(() =>
        Promise.reject(new DOMException('This operation was aborted', 'AbortError')),
      ),
    )
    await lifecycle.stop()
    assert.equal(clock.pending, 0)
  })

  it('that fail while stopping are told with the failure that caused it', async () => {
    const { clock, lifecycle } = stage()
    lifecycle.own('second', (signal) => sleep(clock, 1e9, signal).catch(() => Promise.reject(new Error('cannot save'))))
    lifecycle.own('first', fail('broken'))
    await assert.rejects(lifecycle.ended, (error) => {
      assert.ok(error instanceof AggregateError)
      assert.deepEqual(
        error.errors.map((each: Error) => each.message),
        ['broken', '"second" failed to stop: cannot save'],
      )
      return true
    })
  })

  it('are given up after the grace time', async () => {
    const { clock, lifecycle } = stage()
    lifecycle.own('deaf', forever)
    const stopping = assert.rejects(lifecycle.stop(), /"deaf" did not stop within 30000 ms/)
    await clock.advance(30_000)
    await stopping
  })

  it('are not begun once stopping has', async () => {
    const { lifecycle } = stage()
    await lifecycle.stop()
    assert.throws(() => lifecycle.own('late', () => assert.fail('ran')), /Stopped/)
  })
})
