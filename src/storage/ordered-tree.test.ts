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

const key = fc.integer({ min: 0, max: 400 }).map((n) => `/k/${n}`)

describe('ordered tree', () => {
  it('agrees with a sorted Map after any changes, and leaves every older tree as it was', () => {
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
        assert.deepEqual(entries(OrderedTree.fromSorted(sorted(model))), sorted(model))
      }),
      { numRuns: 60 },
    )
  })

  it('scans and counts any part', () => {
    fc.assert(
      fc.property(fc.uniqueArray(key, { maxLength: 300, size: 'max' }), key, key, (keys, start, end) => {
        let tree = OrderedTree.empty<string>()
        for (const key of keys) tree = tree.set(key, key)
        const expected = keys.filter((key) => key >= start && key < end).sort()
        assert.deepEqual(
          entries(tree, start, end).map(([key]) => key),
          expected,
        )
        assert.equal(Math.max(0, tree.rank(end) - tree.rank(start)), expected.length)
      }),
    )
  })

  it('stops a scan when the visitor says so', () => {
    const tree = OrderedTree.fromSorted(Array.from({ length: 1000 }, (_, n) => [String(10_000 + n), n] as const))
    let seen = 0
    tree.scan('', LAST, () => ++seen < 5)
    assert.equal(seen, 5)
  })

  it('becomes empty again, and hands back itself when there is nothing to delete', () => {
    let tree = OrderedTree.empty<number>()
    for (let n = 0; n < 5000; n++) tree = tree.set(String(n), n)
    for (let n = 0; n < 5000; n++) tree = tree.delete(String((n * 7919) % 5000))
    assert.equal(tree.size, 0)
    assert.deepEqual(entries(tree), [])
    assert.equal(tree.delete('1'), tree)
  })
})
