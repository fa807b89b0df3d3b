import assert from 'node:assert/strict'
import { describe, it } from 'node:test'

import fc from 'fast-check'

import { allocate, type Allocation } from './allocation.ts'

const round = (value: number): number => Math.round(value * 1e6) / 1e6
const rounded = ({ seats, fairFraction }: Allocation): Allocation => ({
  seats: seats.map(round),
  fairFraction: round(fairFraction),
})

describe('allocation of seats to priority levels', () => {
  it('gives every level the same fraction of its target', () => {
    const claims = [10, 30].map((target) => ({ target, lowest: 0, highest: 1000 }))
    assert.deepEqual(rounded(allocate(20, claims)), { seats: [5, 15], fairFraction: 0.5 })
    assert.deepEqual(rounded(allocate(80, claims)), { seats: [20, 60], fairFraction: 2 })
  })

  it('keeps the seats of every level within its bounds', () => {
    const claims = [
      { target: 100, lowest: 50, highest: 1000 },
      { target: 100, lowest: 0, highest: 10 },
      { target: 100, lowest: 0, highest: 1000 },
    ]
    assert.deepEqual(rounded(allocate(80, claims)).seats, [50, 10, 20])
  })

  it('gives leftover seats to levels with a tiny target', () => {
    const claims = [
      { target: 0, lowest: 0, highest: 100 },
      { target: 0, lowest: 0, highest: 100 },
    ]
    assert.deepEqual(allocate(60, claims).seats.map(Math.round), [30, 30])
  })

  it('adds up to the total if the bounds allow that', () => {
    const claim = fc
      .tuple(fc.integer({ min: 0, max: 50 }), fc.integer({ min: 0, max: 50 }), fc.integer({ min: 0, max: 50 }))
      .map(([lowest, more, most]) => ({ lowest, target: lowest + more, highest: lowest + most }))
    fc.assert(
      fc.property(
        fc.array(claim, { minLength: 1, maxLength: 8 }),
        fc.double({ min: 0, max: 1, noNaN: true }),
        (claims, part) => {
          const lowest = claims.reduce((sum, one) => sum + one.lowest, 0)
          const highest = claims.reduce((sum, one) => sum + one.highest, 0)
          const total = lowest + part * (highest - lowest)
          const { seats } = allocate(total, claims)
          const sum = seats.reduce((all, one) => all + one, 0)
          assert.ok(Math.abs(sum - total) < 1e-6, `${sum} of ${total}`)
          for (const [at, { lowest: low, highest: high }] of claims.entries()) {
            const share = seats[at] ?? -1
            assert.ok(share >= low - 1e-9 && share <= high + 1e-9)
          }
        },
      ),
    )
  })
})
