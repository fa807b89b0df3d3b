import assert from 'node:assert/strict'
import { describe, it } from 'node:test'

import type { CustomResourceDefinition } from '#apis/apiextensions/v1.ts'

import { planNames, takenNames } from './names.ts'

const NAMES = { plural: 'as', singular: 'a', kind: 'A', listKind: 'AList' }

function asking(names: object, accepted: object = { plural: '', kind: '' }): CustomResourceDefinition {
  return { spec: { names: { ...NAMES, ...names } }, status: { acceptedNames: accepted } } as CustomResourceDefinition
}

const clashes: readonly (readonly [taken: object, reason: string, message: string])[] = [
  [{ plural: 'as', kind: '' }, 'PluralConflict', '"as" is already in use'],
  [{ plural: 'a', kind: '' }, 'SingularConflict', '"a" is already in use'],
  [
    { plural: 'x', shortNames: ['s1', 's2'], kind: '' },
    'ShortNamesConflict',
    '["s1" is already in use, "s2" is already in use]',
  ],
  [{ plural: 'x', kind: 'A' }, 'KindConflict', '"A" is already in use'],
  [{ plural: 'as', kind: 'A', listKind: 'AList' }, 'ListKindConflict', '"AList" is already in use'],
]

describe('planNames() for a CustomResourceDefinition', () => {
  it('accepts all names if no other definition has them', () => {
    const { accepted, condition } = planNames(asking({ shortNames: ['s'], categories: ['all'] }), takenNames([]))
    assert.deepEqual(accepted, { ...NAMES, shortNames: ['s'], categories: ['all'] })
    assert.deepEqual([condition.status, condition.reason], ['True', 'NoConflicts'])
  })

  for (const [taken, reason, message] of clashes) {
    it(`reports reason ${reason} if another definition has one of the names`, () => {
      const definition = asking({ shortNames: ['s1', 's2'] })
      const { condition } = planNames(definition, takenNames([taken as typeof NAMES]))
      assert.deepEqual(condition, { type: 'NamesAccepted', status: 'False', reason, message })
    })
  }

  it('keeps the accepted names if the changed ones are taken', () => {
    const before = { ...NAMES, shortNames: ['old'] }
    const definition = asking({ shortNames: ['new'] }, before)
    const { accepted } = planNames(definition, takenNames([before, { plural: 'bs', shortNames: ['new'], kind: 'B' }]))
    assert.deepEqual(accepted, before)
  })
})
