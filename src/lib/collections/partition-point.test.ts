import assert from 'node:assert/strict'
import { describe, it } from 'node:test'

import { partitionPoint } from './partition-point.ts'

describe('partitionPoint()', () => {
  it('finds the first index for which the condition is false, in every range', () => {
    for (let low = 0; low <= 6; low++) {
      for (let high = low; high <= 6; high++) {
        for (let first = low; first <= high; first++) {
          assert.equal(
            partitionPoint(low, high, (index) => index < first),
            first,
          )
        }
      }
    }
  })
})
