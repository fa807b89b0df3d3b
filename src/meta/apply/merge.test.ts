import assert from 'node:assert/strict'
import { describe, it } from 'node:test'

import fc from 'fast-check'

import { exampleType } from '#kits/meta/example-kind.ts'

import { mergeTyped } from './merge.ts'

type Spec = Record<string, unknown>

const TABLE: readonly [what: string, live: Spec, applied: Spec, merged: Spec][] = [
  ['applied values win', { image: 'a', paused: true }, { image: 'b' }, { image: 'b', paused: true }],
  [
    'maps merge entry by entry',
    { zones: { a: { weight: 1 } } },
    { zones: { a: { name: 'x' }, b: {} } },
    { zones: { a: { weight: 1, name: 'x' }, b: {} } },
  ],
  [
    'null for a map keeps its entries',
    { zones: { a: {} }, tags: ['x'] },
    { zones: null, tags: null },
    { zones: { a: {} }, tags: ['x'] },
  ],
  ['null replaces an empty map', { zones: {} }, { zones: null }, { zones: null }],
  ['null replaces a value', { image: 'a' }, { image: null }, { image: null }],
  [
    'atomic values are replaced',
    { selector: { a: '1' }, steps: ['a'] },
    { selector: { b: '2' }, steps: ['b'] },
    { selector: { b: '2' }, steps: ['b'] },
  ],
  [
    'untyped maps merge entry by entry',
    { free: { a: { b: 1 } } },
    { free: { a: { c: 2 } } },
    { free: { a: { b: 1, c: 2 } } },
  ],
  ['untyped values of another type are replaced', { free: { a: 1 } }, { free: [1] }, { free: [1] }],
  [
    'sets take the order of the applied configuration',
    { tags: ['a', 'b', 'c'] },
    { tags: ['c', 'a'] },
    { tags: ['b', 'c', 'a'] },
  ],
  [
    'live items keep their position before later items',
    { tags: ['x', 'a', 'y', 'b', 'z'] },
    { tags: ['a', 'n', 'b'] },
    { tags: ['x', 'a', 'y', 'n', 'b', 'z'] },
  ],
  [
    'list items merge by their keys',
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
    'an item replaces repeated items of the live list',
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
    it(what, () => {
      const before = structuredClone([live, applied])
      assert.deepEqual(mergeTyped(exampleType, { spec: live }, { spec: applied }), { spec: merged })
      assert.deepEqual([live, applied], before)
    })
  }

  it('merges sets merge to their union, in both orders', () => {
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
