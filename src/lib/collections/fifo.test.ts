import assert from 'node:assert/strict'
import { describe, it } from 'node:test'

import * as fc from 'fast-check'

import { Fifo } from './fifo.ts'

describe('first-in, first-out queue', () => {
  it('behaves like an array with push and shift for any order of calls', () => {
    const step = fc.oneof(fc.constant('shift' as const), fc.integer())
    fc.assert(
      fc.property(fc.array(step, { maxLength: 500, size: 'max' }), (steps) => {
        const fifo = new Fifo<number>()
        const model: number[] = []
        for (const value of steps) {
          if (value === 'shift') assert.equal(fifo.shift(), model.shift())
          else {
            fifo.push(value)
            model.push(value)
          }
          assert.equal(fifo.size, model.length)
        }
      }),
    )
  })

  it('keeps order across compaction', () => {
    const fifo = new Fifo<number>()
    let next = 0
    for (let round = 0; round < 1000; round++) {
      fifo.push(2 * round)
      fifo.push(2 * round + 1)
      assert.equal(fifo.shift(), next++)
    }
    while (fifo.size > 0) assert.equal(fifo.shift(), next++)
    assert.equal(next, 2000)
    assert.equal(fifo.shift(), undefined)
  })

  it('is empty after clear()', () => {
    const fifo = new Fifo<string>()
    fifo.push('a')
    fifo.clear()
    assert.equal(fifo.size, 0)
    assert.equal(fifo.shift(), undefined)
  })
})
