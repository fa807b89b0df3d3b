import assert from 'node:assert/strict'
import { describe, it } from 'node:test'

import { createVirtualClock } from './clock.ts'
import { runPeriodically } from './periodic.ts'

describe('runPeriodically', () => {
  it('runs the task once per period even if it fails', async () => {
    const clock = createVirtualClock(0)
    const errors: unknown[] = []
    let count = 0
    const rounds = runPeriodically({ clock, periodMs: 10, onError: (error) => errors.push(error) }, async () => {
      count++
      if (count === 2) throw new Error('no')
    })
    await clock.advance(9)
    assert.equal(count, 0)
    await clock.advance(26)
    assert.equal(count, 3)
    assert.deepEqual(
      errors.map((error) => (error as Error).message),
      ['no'],
    )
    await rounds.stop()
    await clock.advance(100)
    assert.equal(count, 3)
  })

  it('stops waiting for the task after a limit and ignores later errors', async () => {
    const clock = createVirtualClock(0)
    const gate = Promise.withResolvers<void>()
    const rounds = runPeriodically({ clock, periodMs: 10, onError: () => assert.fail() }, () => gate.promise)
    await clock.advance(10)
    const stopping = rounds.stop()
    await clock.advance(1000)
    await stopping
    gate.reject(new Error('closed'))
    await clock.advance(10)
  })

  it('starts no run while one is active, and waits for the active run on stop', async () => {
    const clock = createVirtualClock(0)
    const gate = Promise.withResolvers<void>()
    let count = 0
    const rounds = runPeriodically({ clock, periodMs: 10, onError: () => assert.fail() }, () => {
      count++
      return gate.promise
    })
    await clock.advance(50)
    assert.equal(count, 1)
    let isStopped = false
    const stopping = rounds.stop().then(() => (isStopped = true))
    await clock.advance(50)
    assert.equal(isStopped, false)
    gate.resolve()
    await stopping
    await rounds.stop()
    assert.equal(count, 1)
  })
})
