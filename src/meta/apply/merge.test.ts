import assert from 'node:assert/strict'
import { describe, it } from 'node:test'

import fc from 'fast-check'

import { exampleType } from '#kits/meta/example-kind.ts'

import { mergeTyped } from './merge.ts'

type Spec = Record<string, unknown>

const TABLE: readonly [what: string, live: Spec, applied: Spec, merged: Spec][] = [
  ['replaces values with applied ones', { image: 'a', paused: true }, { image: 'b' }, { image: 'b', paused: true }],
  [
    'merges maps entry by entry',
    { zones: { a: { weight: 1 } } },
    { zones: { a: { name: 'x' }, b: {} } },
    { zones: { a: { weight: 1, name: 'x' }, b: {} } },
  ],
  [
    'keeps the entries of a map if null is applied',
    { zones: { a: {} }, tags: ['x'] },
    { zones: null, tags: null },
    { zones: { a: {} }, tags: ['x'] },
  ],
  ['replaces an empty map with null', { zones: {} }, { zones: null }, { zones: null }],
  ['replaces a value with null', { image: 'a' }, { image: null }, { image: null }],
  [
    'replaces atomic maps and lists as a whole',
    { selector: { a: '1' }, steps: ['a'] },
    { selector: { b: '2' }, steps: ['b'] },
    { selector: { b: '2' }, steps: ['b'] },
  ],
  [
    'merges untyped maps entry by entry',
    { free: { a: { b: 1 } } },
    { free: { a: { c: 2 } } },
    { free: { a: { b: 1, c: 2 } } },
  ],
  ['replaces untyped values of another type', { free: { a: 1 } }, { free: [1] }, { free: [1] }],
  [
    'orders sets as in the applied configuration',
    { tags: ['a', 'b', 'c'] },
    { tags: ['c', 'a'] },
    { tags: ['b', 'c', 'a'] },
  ],
  [
    'keeps items of the live list before later items',
    { tags: ['x', 'a', 'y', 'b', 'z'] },
    { tags: ['a', 'n', 'b'] },
    { tags: ['x', 'a', 'y', 'n', 'b', 'z'] },
  ],
  [
    'merges list items by their keys',
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
    'replaces repeated items of the live list by one item',
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

describe('merge of an applied configuration into an object', () => {
  for (const [what, live, applied, merged] of TABLE) {
    it(what, () => {
      const before = structuredClone([live, applied])
      assert.deepEqual(mergeTyped(exampleType, { spec: live }, { spec: applied }), { spec: merged })
      assert.deepEqual([live, applied], before)
    })
  }

  it('merges sets to their union, in both orders', () => {
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
