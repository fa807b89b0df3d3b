import assert from 'node:assert/strict'
import { describe, it } from 'node:test'

import fc from 'fast-check'

import { exampleType } from './example-kind.ts'
import { mergeTyped } from './merge.ts'

type Spec = Record<string, unknown>

const TABLE: readonly [what: string, live: Spec, applied: Spec, merged: Spec][] = [
  ['what is applied wins', { image: 'a', paused: true }, { image: 'b' }, { image: 'b', paused: true }],
  [
    'maps entry by entry',
    { zones: { a: { weight: 1 } } },
    { zones: { a: { name: 'x' }, b: {} } },
    { zones: { a: { weight: 1, name: 'x' }, b: {} } },
  ],
  [
    'null for a map changes nothing in it',
    { zones: { a: {} }, tags: ['x'] },
    { zones: null, tags: null },
    { zones: { a: {} }, tags: ['x'] },
  ],
  ['null for an empty map is null', { zones: {} }, { zones: null }, { zones: null }],
  ['null for a value is null', { image: 'a' }, { image: null }, { image: null }],
  [
    'atomic things whole',
    { selector: { a: '1' }, steps: ['a'] },
    { selector: { b: '2' }, steps: ['b'] },
    { selector: { b: '2' }, steps: ['b'] },
  ],
  [
    'untyped maps entry by entry',
    { free: { a: { b: 1 } } },
    { free: { a: { c: 2 } } },
    { free: { a: { b: 1, c: 2 } } },
  ],
  ['untyped things of another shape whole', { free: { a: 1 } }, { free: [1] }, { free: [1] }],
  ['sets in the order applied', { tags: ['a', 'b', 'c'] }, { tags: ['c', 'a'] }, { tags: ['b', 'c', 'a'] }],
  [
    'live members before what they stood before',
    { tags: ['x', 'a', 'y', 'b', 'z'] },
    { tags: ['a', 'n', 'b'] },
    { tags: ['x', 'a', 'y', 'n', 'b', 'z'] },
  ],
  [
    'items by their keys',
    { ports: [{ port: 1, name: 'a' }, { port: 2 }] },
    { ports: [{ port: 2, name: 'b' }] },
    {
      ports: [
        { port: 1, name: 'a' },
        { port: 2, name: 'b' },
      ],
    },
  ],
  [
    'an item the live list has twice is replaced',
    {
      ports: [
        { port: 1, name: 'a' },
        { port: 1, name: 'b' },
      ],
    },
    { ports: [{ port: 1 }] },
    { ports: [{ port: 1 }] },
  ],
]

describe('mergeTyped', () => {
  for (const [what, live, applied, merged] of TABLE) {
    it(`merges ${what}`, () => {
      const before = structuredClone([live, applied])
      assert.deepEqual(mergeTyped(exampleType, { spec: live }, { spec: applied }), { spec: merged })
      assert.deepEqual([live, applied], before)
    })
  }

  it('merges sets into all that either has, each in its order', () => {
    const tags = fc.uniqueArray(fc.constantFrom('a', 'b', 'c', 'd', 'e', 'f') as fc.Arbitrary<string>)
    fc.assert(
      fc.property(tags, tags, (live, applied) => {
        const value = mergeTyped(exampleType, { spec: { tags: live } }, { spec: { tags: applied } })
        const merged = (value as { spec: { tags: string[] } }).spec.tags
        assert.deepEqual(merged.toSorted(), [...new Set([...live, ...applied])].toSorted())
        assert.deepEqual(
          merged.filter((tag) => applied.includes(tag)),
          applied,
        )
        const own = (list: readonly string[]) => list.filter((tag) => !applied.includes(tag))
        assert.deepEqual(own(merged), own(live))
      }),
    )
  })
})
