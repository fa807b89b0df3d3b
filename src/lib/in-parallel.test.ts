import assert from 'node:assert/strict'
import { describe, it } from 'node:test'

import { inParallel } from './in-parallel.ts'

describe('inParallel()', () => {
  it('runs at most the given number of tasks at a time, and keeps the order of the results', async () => {
    let running = 0
    let most = 0
    const results = await inParallel([5, 1, 4, 2, 3], 2, async (value) => {
      most = Math.max(most, ++running)
      for (let turn = 0; turn < value; turn++) await Promise.resolve()
      running--
      return value * 10
    })
    assert.deepEqual([results, most], [[50, 10, 40, 20, 30], 2])
  })

  it('starts no task after a failure', async () => {
    const started: number[] = []
    const failing = inParallel([1, 2, 3, 4], 1, async (value) => {
      started.push(value)
      if (value === 2) throw new Error('the second')
    })
    await assert.rejects(failing, /the second/)
    assert.deepEqual(started, [1, 2])
  })

  it('returns nothing for no values', async () => {
    assert.deepEqual(await inParallel([], 3, () => Promise.resolve(1)), [])
  })
})
