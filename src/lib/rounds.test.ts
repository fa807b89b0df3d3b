import assert from 'node:assert/strict'
import { describe, it } from 'node:test'

import { createVirtualClock } from './clock.ts'
import { startRounds } from './rounds.ts'

describe('startRounds', () => {
  it('does the work once a period, whatever it fails of', async () => {
    const clock = createVirtualClock(0)
    const told: unknown[] = []
    let count = 0
    const rounds = startRounds({ clock, periodMs: 10, onError: (error) => told.push(error) }, async () => {
      count++
      if (count === 2) throw new Error('no')
    })
    await clock.advance(9)
    assert.equal(count, 0)
    await clock.advance(26)
    assert.equal(count, 3)
    assert.deepEqual(
      told.map((error) => (error as Error).message),
      ['no'],
    )
    await rounds.stop()
    await clock.advance(100)
    assert.equal(count, 3)
  })

  it('does not wait for ever, nor tell what a round fails of that nobody waits for', async () => {
    const clock = createVirtualClock(0)
    const gate = Promise.withResolvers<void>()
    const rounds = startRounds({ clock, periodMs: 10, onError: () => assert.fail() }, () => gate.promise)
    await clock.advance(10)
    const stopping = rounds.stop()
    await clock.advance(1000)
    await stopping
    gate.reject(new Error('closed'))
    await clock.advance(10)
  })

  it('begins no round while one is running, and waits for it when stopped', async () => {
    const clock = createVirtualClock(0)
    const gate = Promise.withResolvers<void>()
    let count = 0
    const rounds = startRounds({ clock, periodMs: 10, onError: () => assert.fail() }, () => {
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
