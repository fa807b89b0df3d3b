import assert from 'node:assert/strict'
import { describe, it } from 'node:test'

import fc from 'fast-check'

import {
  difference,
  EMPTY_SET,
  equalSets,
  fieldPaths,
  type FieldSet,
  hasPath,
  intersection,
  isEmptySet,
  pathsOf,
  recursiveDifference,
  setOf,
  union,
} from './field-set.ts'

const element = fc.constantFrom('f:a', 'f:b', 'f:__proto__', 'k:{"name":"x"}', 'v:1')
const path = fc.array(element, { minLength: 1, maxLength: 3 })
const paths = fc.array(path, { maxLength: 8 })

/** The naive model: a set of paths as a set of texts. */
function model(set: FieldSet): Set<string> {
  return new Set([...pathsOf(set)].map((each) => JSON.stringify(each)))
}

function isBelow(text: string, others: ReadonlySet<string>): boolean {
  const elements = JSON.parse(text) as string[]
  return elements.some((_, at) => others.has(JSON.stringify(elements.slice(0, at + 1))))
}

describe('set of field paths', () => {
  it('has union, intersection and difference like any set', () => {
    fc.assert(
      fc.property(paths, paths, (left, right) => {
        const [a, b] = [setOf(...left), setOf(...right)]
        const [x, y] = [model(a), model(b)]
        assert.deepEqual(x, new Set(left.map((each) => JSON.stringify(each))))
        assert.deepEqual(model(union(a, b)), x.union(y))
        assert.deepEqual(model(intersection(a, b)), x.intersection(y))
        assert.deepEqual(model(difference(a, b)), x.difference(y))
        assert.deepEqual(model(recursiveDifference(a, b)), new Set([...x].filter((each) => !isBelow(each, y))))
        assert.equal(equalSets(a, b), x.symmetricDifference(y).size === 0)
        assert.equal(isEmptySet(difference(a, b)), x.isSubsetOf(y))
        for (const each of left) assert.equal(hasPath(a, each), true)
      }),
    )
  })

  it('has no empty children, so that an empty set is recognized without a walk', () => {
    const set = difference(fieldPaths('a.b.c', 'd'), fieldPaths('a.b.c'))
    assert.deepEqual([...set.children], [])
    assert.equal(intersection(fieldPaths('a.b'), fieldPaths('a.c')).children.size, 0)
  })

  it('is returned unchanged by operations that change nothing', () => {
    const set = fieldPaths('a.b', 'c')
    assert.equal(difference(set, fieldPaths('a', 'x.y')), set)
    assert.equal(recursiveDifference(set, fieldPaths('a.c')), set)
    assert.equal(union(set, EMPTY_SET), set)
  })

  it('lists shorter paths before longer ones, like upstream', () => {
    const set = fieldPaths('spec.z', 'spec.a.b', 'spec.m', 'data')
    assert.deepEqual(
      [...pathsOf(set)].map((each) => each.map((part) => part.slice(2)).join('.')),
      ['data', 'spec.m', 'spec.z', 'spec.a.b'],
    )
  })
})
