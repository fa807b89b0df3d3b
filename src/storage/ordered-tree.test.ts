import assert from 'node:assert/strict'
import { describe, it } from 'node:test'

import * as fc from 'fast-check'

import { OrderedTree } from './ordered-tree.ts'

const LAST = '\u{10ffff}'

function entries<V>(tree: OrderedTree<V>, start = '', end = LAST): [string, V][] {
  const out: [string, V][] = []
  tree.scan(start, end, (value, key) => void out.push([key, value]))
  return out
}

function sorted<V>(model: ReadonlyMap<string, V>): [string, V][] {
  return [...model].sort(([a], [b]) => (a < b ? -1 : 1))
}

const numbered = (count: number): number[] => Array.from({ length: count }, (_, n) => 10_000_000 + n)

const key = fc.integer({ min: 0, max: 400 }).map((n) => `/k/${n}`)

describe('OrderedTree', () => {
  it('agrees with a sorted Map after any changes, and leaves older versions of the tree unchanged', () => {
    const change = fc.record({ key, value: fc.option(fc.nat()) })
    fc.assert(
      fc.property(fc.array(change, { maxLength: 600, size: 'max' }), (changes) => {
        let tree = OrderedTree.empty<number>()
        const model = new Map<string, number>()
        const past: [OrderedTree<number>, [string, number][]][] = []
        for (const [at, { key, value }] of changes.entries()) {
          if (at % 97 === 0) past.push([tree, sorted(model)])
          tree = value === null ? tree.delete(key) : tree.set(key, value)
          if (value === null) model.delete(key)
          else model.set(key, value)
          assert.equal(tree.get(key), model.get(key))
        }
        assert.deepEqual(entries(tree), sorted(model))
        assert.equal(tree.size, model.size)
        for (const [old, expected] of past) assert.deepEqual(entries(old), expected)
        const again = OrderedTree.fromSorted(sorted(model), ([key]) => key)
        assert.deepEqual(
          entries(again).map(([, entry]) => entry),
          sorted(model),
        )
      }),
      { numRuns: 60 },
    )
  })

  it('iterates over and counts any part', () => {
    fc.assert(
      fc.property(
        fc.uniqueArray(key, { maxLength: 300, size: 'max' }),
        key,
        key,
        fc.boolean(),
        (keys, start, end, isWide) => {
          let tree = OrderedTree.empty<string>(isWide ? 100 : 5)
          for (const key of keys) tree = tree.set(key, key)
          const expected = keys.filter((key) => key >= start && key < end).sort()
          assert.deepEqual(
            entries(tree, start, end).map(([key]) => key),
            expected,
          )
          assert.deepEqual([...tree.slices(start, end)].flat(), expected)
          assert.equal(tree.count(start, end), expected.length)
        },
      ),
    )
  })

  it('stops an iteration if the callback returns false', () => {
    const tree = OrderedTree.fromSorted(numbered(1000), String)
    let seen = 0
    tree.scan('', LAST, () => ++seen < 5)
    assert.equal(seen, 5)
  })

  it('finds a few of many values without visiting the others', () => {
    const looksAt = (size: number): number => {
      const tree = OrderedTree.fromSorted(numbered(size), String, 256)
      let seen = 0
      for (const run of tree.runs(String(10_000_000 + size / 2), LAST)) {
        seen += run.values.length
        if (seen >= 500) break
      }
      return seen
    }
    assert.deepEqual([1000, 10_000, 100_000].map(looksAt), [512, 512, 512])
  })

  it('caches results derived from a run of values until one of these values changes', () => {
    const tree = OrderedTree.fromSorted(numbered(600), String, 256)
    for (const { memo, values } of tree.runs('', LAST)) memo.set('sum', values.length)
    const changed = tree.set('10000300', 1)
    const known = (of: OrderedTree<number>): unknown[] => Array.from(of.runs('', LAST), ({ memo }) => memo.get('sum'))
    assert.deepEqual(known(changed), [256, undefined, 88])
    assert.deepEqual(known(tree), [256, 256, 88])
  })

  it('is empty after all deletions, and returns itself if there is nothing to delete', () => {
    let tree = OrderedTree.empty<number>()
    for (let n = 0; n < 5000; n++) tree = tree.set(String(n), n)
    for (let n = 0; n < 5000; n++) tree = tree.delete(String((n * 7919) % 5000))
    assert.equal(tree.size, 0)
    assert.deepEqual(entries(tree), [])
    assert.equal(tree.delete('1'), tree)
  })
})
