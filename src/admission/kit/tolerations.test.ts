import assert from 'node:assert/strict'
import { describe, it } from 'node:test'

import fc from 'fast-check'

import type { Toleration } from '#apis/core/v1.ts'
import { semanticEqual } from '#meta/object.ts'

import { mergeTolerations, TolerationSet } from './tolerations.ts'

const SAMPLES: Readonly<Record<string, Toleration>> = {
  all: { operator: 'Exists' },
  'all-nosched': { operator: 'Exists', effect: 'NoSchedule' },
  foo: { key: 'foo', operator: 'Exists' },
  'foo-bar': { key: 'foo', operator: 'Equal', value: 'bar' },
  'foo-nosched': { key: 'foo', operator: 'Exists', effect: 'NoSchedule' },
  'foo-bar-nosched': { key: 'foo', operator: 'Equal', value: 'bar', effect: 'NoSchedule' },
  'foo-baz-nosched': { key: 'foo', operator: 'Equal', value: 'baz', effect: 'NoSchedule' },
  'foo-noexec': { key: 'foo', operator: 'Exists', effect: 'NoExecute' },
  'foo-noexec-10': { key: 'foo', operator: 'Exists', effect: 'NoExecute', tolerationSeconds: 10 },
  'foo-noexec-0': { key: 'foo', operator: 'Exists', effect: 'NoExecute', tolerationSeconds: 0 },
  'foo-bar-noexec-10': { key: 'foo', operator: 'Equal', value: 'bar', effect: 'NoExecute', tolerationSeconds: 10 },
  'foo-gt': { key: 'foo', operator: 'Gt', value: '1' },
}

const named = (names: string): Toleration[] => names.split(' ').map((name) => SAMPLES[name]!)

describe('TolerationSet', () => {
  const included: Readonly<Record<string, string>> = {
    all: Object.keys(SAMPLES).join(' '),
    'all-nosched': 'all-nosched foo-nosched foo-bar-nosched foo-baz-nosched',
    foo: Object.keys(SAMPLES)
      .filter((name) => name.startsWith('foo'))
      .join(' '),
    'foo-bar': 'foo-bar foo-bar-nosched foo-bar-noexec-10',
    'foo-nosched': 'foo-nosched foo-bar-nosched foo-baz-nosched',
    'foo-noexec': 'foo-noexec foo-noexec-10 foo-noexec-0 foo-bar-noexec-10',
    'foo-noexec-10': 'foo-noexec-10 foo-noexec-0 foo-bar-noexec-10',
    'foo-noexec-0': 'foo-noexec-0',
    'foo-bar-noexec-10': 'foo-bar-noexec-10',
    'foo-gt': 'foo-gt',
  }
  for (const [wide, narrow] of Object.entries(included)) {
    it(`covers exactly the listed tolerations if it contains "${wide}"`, () => {
      const set = new TolerationSet(named(wide))
      const found = Object.keys(SAMPLES).filter((name) => set.includes(SAMPLES[name]!))
      assert.deepEqual(found, narrow.split(' '))
    })
  }
})

describe('mergeTolerations', () => {
  const table: readonly (readonly [first: string, second: string, merged: string])[] = [
    ['foo-bar-nosched foo-noexec-10', 'foo-baz-nosched', 'foo-bar-nosched foo-noexec-10 foo-baz-nosched'],
    ['foo-bar-nosched foo-noexec-10', 'foo-bar-nosched foo-noexec-10', 'foo-bar-nosched foo-noexec-10'],
    ['foo-bar-nosched foo-baz-nosched', 'foo-nosched', 'foo-nosched'],
    ['foo-noexec-0 foo-noexec-10', 'foo-noexec', 'foo-noexec'],
    ['foo-bar-nosched foo-noexec-10', 'all', 'all'],
    ['all', 'foo-bar-nosched foo-noexec-10', 'all'],
  ]
  for (const [first, second, merged] of table) {
    it(`merges "${first}" and "${second}" to "${merged}"`, () =>
      assert.deepEqual(mergeTolerations(named(first), named(second)), named(merged)))
  }

  it('returns the same result as a comparison of each pair of tolerations', () => {
    const toleration = fc
      .record({
        key: fc.constantFrom('a', 'b'),
        isExists: fc.boolean(),
        value: fc.constantFrom('', 'x', 'y'),
        effect: fc.constantFrom(undefined, 'NoSchedule', 'NoExecute'),
        seconds: fc.option(fc.nat(3), { nil: undefined }),
      })
      .map(({ key, isExists, value, effect, seconds }): Toleration => ({
        key,
        ...(isExists ? { operator: 'Exists' } : { operator: 'Equal', value }),
        ...(effect !== undefined && { effect }),
        ...(effect === 'NoExecute' && seconds !== undefined && { tolerationSeconds: seconds }),
      }))
    const list = fc.array(fc.oneof(toleration, fc.constant(SAMPLES['all']!)), { maxLength: 8 })
    fc.assert(
      fc.property(list, list, (first, second) =>
        assert.deepEqual(mergeTolerations(first, second), mergedByPairs([...first, ...second])),
      ),
    )
  })
})

/** The definition: a toleration stays unless an earlier one that stays, or a different later one, includes it. */
function mergedByPairs(all: readonly Toleration[]): Toleration[] {
  const merged: Toleration[] = []
  for (const [at, one] of all.entries()) {
    const isIncluded =
      merged.some((other) => includesOne(other, one)) ||
      all.slice(at + 1).some((other) => !semanticEqual(other, one) && includesOne(other, one))
    if (!isIncluded) merged.push(one)
  }
  return merged
}

function includesOne(wide: Toleration, narrow: Toleration): boolean {
  return new TolerationSet([wide]).includes(narrow)
}
