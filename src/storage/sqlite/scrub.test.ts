import assert from 'node:assert/strict'
import { it } from 'node:test'

import { createVirtualClock } from '#lib/clock.ts'

import type { ReadCalls } from './read-calls.ts'
import { createScrub } from './scrub.ts'

const HOUR_MS = 3_600_000

it('the scrub of the SQLite store runs once a day, at once if it never ran, and stops at damage', async () => {
  const starts: number[] = []
  const answers: (number | Error)[] = [10, 20, 0, 10, new Error('Damaged'), 0]
  const call = async (_: string, fromId: number): Promise<number> => {
    starts.push(fromId)
    const answer = answers.shift()
    if (answer instanceof Error) throw answer
    return answer ?? 0
  }
  const clock = createVirtualClock()
  createScrub(clock, { call } as unknown as ReadCalls, false)
  await clock.advance(10_000)
  assert.deepEqual(starts, [0, 10, 20])
  await clock.advance(23 * HOUR_MS)
  assert.equal(starts.length, 3)
  await clock.advance(2 * HOUR_MS)
  assert.deepEqual(starts.slice(3), [0, 10])
  assert.equal(clock.pending, 0)
})
