import assert from 'node:assert/strict'
import { describe, it } from 'node:test'

import fc from 'fast-check'

import { deal, flowHash } from './dealer.ts'

describe('shuffle sharding of flows', () => {
  it("assigns upstream's queues to each flow", () => {
    assert.equal(flowHash('global-default', 'jane'), flowHash('global-default', 'jane'))
    assert.notEqual(flowHash('global-default', 'jane'), flowHash('global-default', 'bob'))
    // 1 + 128 * (2 + 127 * 3): first card 1, then the second of what is left, then the third.
    assert.deepEqual(deal(1n + 128n * (2n + 127n * 3n), 128, 3), [1, 3, 5])
    assert.deepEqual(deal(0n, 4, 4), [0, 1, 2, 3])
  })

  it('assigns distinct queues to a flow', () => {
    const flow = fc.bigInt({ min: 0n, max: 2n ** 64n - 1n })
    fc.assert(
      fc.property(flow, fc.integer({ min: 8, max: 512 }), fc.integer({ min: 1, max: 6 }), (hash, deck, size) => {
        const hand = deal(hash, deck, size)
        assert.equal(new Set(hand).size, size)
        assert.ok(hand.every((card) => card >= 0 && card < deck))
      }),
    )
  })

  it('assigns every queue equally often', () => {
    const counts = Array.from({ length: 16 }, () => 0)
    for (let flow = 0; flow < 4000; flow++) {
      for (const card of deal(flowHash('s', String(flow)), 16, 4)) counts[card] = (counts[card] ?? 0) + 1
    }
    for (const count of counts) assert.ok(count > 850 && count < 1150, counts.join(' '))
  })
})
