import assert from 'node:assert/strict'
import { describe, it } from 'node:test'

import { ByteBudget } from './byte-budget.ts'

/** A task that runs until the test ends it, and a record of running tasks. */
function createRunner(budget: ByteBudget): {
  readonly running: Set<string>
  readonly run: (name: string, bytes: number, signal?: AbortSignal) => { end: () => Promise<void>; done: Promise<void> }
} {
  const running = new Set<string>()
  return {
    running,
    run(name, bytes, signal) {
      const { promise, resolve } = Promise.withResolvers<void>()
      const done = budget.run(bytes, signal, async () => {
        running.add(name)
        await promise
        running.delete(name)
      })
      const end = async (): Promise<void> => {
        resolve()
        await done
        await settled()
      }
      return { end, done }
    },
  }
}

const settled = (): Promise<void> => new Promise((resolve) => setImmediate(resolve))

describe('ByteBudget of etcd requests', () => {
  it('runs tasks within the budget concurrently, and others in order of arrival', async () => {
    const { running, run } = createRunner(new ByteBudget(10))
    const a = run('a', 6)
    const b = run('b', 6)
    const c = run('c', 1)
    await settled()
    assert.deepEqual([...running], ['a'], 'c does not overtake b')
    await a.end()
    assert.deepEqual([...running], ['b', 'c'])
    await Promise.all([b.end(), c.end()])
  })

  it('runs a task alone if it exceeds the budget', async () => {
    const { running, run } = createRunner(new ByteBudget(10))
    const a = run('a', 1)
    const giant = run('giant', 1000)
    const c = run('c', 1)
    await a.end()
    assert.deepEqual([...running], ['giant'])
    await giant.end()
    assert.deepEqual([...running], ['c'])
    await c.end()
  })

  it('runs later tasks before an aborted one, and releases the bytes of a failed task', async () => {
    const budget = new ByteBudget(10)
    const { running, run } = createRunner(budget)
    await assert.rejects(
      budget.run(10, undefined, () => Promise.reject(new Error('Broken'))),
      /Broken/,
    )
    const a = run('a', 6)
    const stop = new AbortController()
    const b = run('b', 6, stop.signal)
    const c = run('c', 4)
    await settled()
    const reason = new Error('Enough')
    stop.abort(reason)
    await assert.rejects(b.done, reason)
    await settled()
    assert.deepEqual([...running], ['a', 'c'])
    await Promise.all([a.end(), c.end()])
    const all = run('all', 10)
    await settled()
    assert.deepEqual([...running], ['all'])
    await all.end()
  })
})
