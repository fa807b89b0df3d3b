import assert from 'node:assert/strict'
import { it } from 'node:test'

import { createVirtualClock } from '#lib/clock.ts'

import type { ReadCalls } from './read-calls.ts'
import { createScrub } from './scrub.ts'

const HOUR_MS = 3_600_000

it('the scrub goes through the store once a day, at once when it was not checked, and stops at damage', async () => {
  const asked: number[] = []
  const answers: (number | Error)[] = [10, 20, 0, 10, new Error('Damaged'), 0]
  const call = async (_: string, fromId: number): Promise<number> => {
    asked.push(fromId)
    const answer = answers.shift()
    if (answer instanceof Error) throw answer
    return answer ?? 0
  }
  const clock = createVirtualClock()
  createScrub(clock, { call } as unknown as ReadCalls, false)
  await clock.advance(10_000)
  assert.deepEqual(asked, [0, 10, 20])
  await clock.advance(23 * HOUR_MS)
  assert.equal(asked.length, 3)
  await clock.advance(2 * HOUR_MS)
  assert.deepEqual(asked.slice(3), [0, 10])
  assert.equal(clock.pending, 0)
})
