import assert from 'node:assert/strict'
import { describe, it } from 'node:test'

import { RetryAfter } from './retry-after.ts'

describe('Retry-After of rejected requests', () => {
  it('doubles up to half a minute while many requests are rejected, and decreases by one second while few are', () => {
    const retry = new RetryAfter()
    const values: number[] = []
    let second = 1000
    const drop = (count: number): void => {
      for (let each = 0; each < count; each++) retry.dropped(second * 1000)
      values.push(retry.value)
      second++
    }
    for (let each = 0; each < 70; each++) drop(200)
    assert.deepEqual(values.slice(0, 16), [1, 2, 2, 4, 4, 4, 4, 8, 8, 8, 8, 8, 8, 8, 8, 16])
    assert.equal(values.at(-1), 32)
    second += 100
    drop(1)
    drop(1)
    assert.deepEqual(values.slice(-2), [31, 30])
  })

  it('is one second at first, and for few rejections', () => {
    const retry = new RetryAfter()
    for (let second = 0; second < 10; second++) retry.dropped(second * 1000)
    assert.equal(retry.value, 1)
  })
})
