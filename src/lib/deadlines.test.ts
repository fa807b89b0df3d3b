import assert from 'node:assert/strict'
import { describe, it } from 'node:test'

import { createVirtualClock } from './clock.ts'
import { createDeadlines } from './deadlines.ts'

describe('deadlines with one shared timer', () => {
  it('expire in the order of their times, unless they are cancelled', async () => {
    const clock = createVirtualClock()
    const deadlines = createDeadlines(clock, 60_000)
    const late: string[] = []
    deadlines(60_000, () => late.push(`a at ${clock.elapsed()}`))
    await clock.advance(10_000)
    const b = deadlines(60_000, () => late.push('b'))
    deadlines(1000, () => late.push(`wish at ${clock.elapsed()}`))
    await clock.advance(10_000)
    deadlines(60_000, () => late.push(`c at ${clock.elapsed()}`))
    b.cancel()
    await clock.advance(200_000)
    assert.deepEqual(late, ['wish at 11000', 'a at 60000', 'c at 80000'])
  })

  it('stop the timer when all have expired', async () => {
    const clock = createVirtualClock()
    const deadlines = createDeadlines(clock, 60_000)
    const running = Array.from({ length: 100 }, () => deadlines(60_000, () => assert.fail('Was cancelled')))
    assert.equal(clock.pending, 1)
    for (const deadline of running) deadline.cancel()
    await clock.advance(60_000)
    assert.equal(clock.pending, 0)
  })
})
