import assert from 'node:assert/strict'
import { describe, it } from 'node:test'

import * as fc from 'fast-check'

import { type Link, InsertionSet } from './insertion-set.ts'

describe('InsertionSet', () => {
  it('behaves like a set of its links for any order of calls', () => {
    const step = fc.oneof(fc.constant('add' as const), fc.nat(20))
    fc.assert(
      fc.property(fc.array(step, { maxLength: 200 }), (steps) => {
        const roll = new InsertionSet<number>()
        const links: Link<number>[] = []
        const model = new Set<Link<number>>()
        for (const [at, what] of steps.entries()) {
          const link = what === 'add' ? roll.add(at) : links[what]
          if (link === undefined) continue
          if (what === 'add') links.push(link)
          if (what === 'add') model.add(link)
          else assert.equal(link.remove(), model.delete(link))
          const values = [...model].map(({ value }) => value)
          assert.deepEqual([[...roll], roll.size, roll.first?.value], [values, values.length, values[0]])
        }
      }),
    )
  })

  it('iterates over a snapshot', () => {
    const roll = new InsertionSet<string>()
    const links = ['a', 'b', 'c'].map((value) => roll.add(value))
    const seen: string[] = []
    for (const value of roll) {
      seen.push(value)
      for (const link of links) link.remove()
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
