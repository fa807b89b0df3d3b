import assert from 'node:assert/strict'
import { describe, it } from 'node:test'

import * as fc from 'fast-check'

import { type Link, Roll } from './roll.ts'

describe('roll', () => {
  it('behaves as a set of its links, whatever the order of calls', () => {
    const step = fc.oneof(fc.constant('add' as const), fc.nat(20))
    fc.assert(
      fc.property(fc.array(step, { maxLength: 200 }), (steps) => {
        const roll = new Roll<number>()
        const links: Link<number>[] = []
        const model = new Set<Link<number>>()
        for (const [at, what] of steps.entries()) {
          const link = what === 'add' ? roll.add(at) : links[what]
          if (link === undefined) continue
          if (what === 'add') links.push(link)
          if (what === 'add') model.add(link)
          else assert.equal(link.leave(), model.delete(link))
          const values = [...model].map(({ value }) => value)
          assert.deepEqual([[...roll], roll.size, roll.first?.value], [values, values.length, values[0]])
        }
      }),
    )
  })

  it('is gone through as it was when that began', () => {
    const roll = new Roll<string>()
    const links = ['a', 'b', 'c'].map((value) => roll.add(value))
    const seen: string[] = []
    for (const value of roll) {
      seen.push(value)
      for (const link of links) link.leave()
      roll.add('d')
    }
    assert.deepEqual(
      [seen, [...roll]],
      [
        ['a', 'b', 'c'],
        ['d', 'd', 'd'],
      ],
    )
  })
})
