import assert from 'node:assert/strict'
import { describe, it } from 'node:test'

import * as fc from 'fast-check'

import { assertGrowth } from '#lib/growth.fixture.ts'

import { overlapWarnings } from './overlaps.ts'

function pairsOf(paths: readonly string[]): string[] {
  const items = paths.map((path) => ({ key: 'k', path }))
  return overlapWarnings([{ name: 'v', configMap: { name: 'c', items } }]).map(
    (text) => text.split('overlapping paths: ')[1] ?? '',
  )
}

/** Compares each path with each earlier one. */
function pairsByComparison(paths: readonly string[]): string[] {
  const trimmed = paths.map((path) => path.replace(/\/+$/, ''))
  const isWithin = (inner: string, outer: string): boolean => inner === outer || inner.startsWith(`${outer}/`)
  return trimmed.flatMap((path, at) =>
    trimmed
      .slice(0, at)
      .filter((other) => path !== '' && other !== '' && (isWithin(path, other) || isWithin(other, path)))
      .map((other) => `"${path}" with "${other}"`),
  )
}

describe('overlapWarnings() for mount paths', () => {
  it('finds the same pairs as a comparison of each path with each other, in the same order', () => {
    const path = fc
      .array(fc.constantFrom('a', 'ab', 'b', '/', '/', '-', '.'), { maxLength: 6 })
      .map((parts) => parts.join(''))
    fc.assert(
      fc.property(fc.array(path, { maxLength: 12 }), (paths) => {
        assert.deepEqual(pairsOf(paths), pairsByComparison(paths))
      }),
    )
  })

  it('takes at most n log n comparisons, for distinct and for equal paths', () => {
    const prefix = 'a'.repeat(50)
    assertGrowth(5000, (size) => Array.from({ length: size }, (_, n) => `${prefix}${n}`), pairsOf)
    assertGrowth(5000, (size) => Array.from({ length: size }, () => prefix), pairsOf)
  })
})
