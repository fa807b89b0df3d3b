import assert from 'node:assert/strict'
import { describe, it } from 'node:test'

import { equalIgnoringTimes } from './equal-ignoring-times.ts'

const entry = { manager: 'm', operation: 'Update', apiVersion: 'v1', fieldsType: 'FieldsV1', fieldsV1: {} } as const

describe('sameButForTimes() before a write', () => {
  const live = { kind: 'A', metadata: { name: 'a', managedFields: [{ ...entry, time: '2026-01-01T00:00:00Z' }] } }
  const later = [{ ...entry, time: '2026-02-02T00:00:00Z' }]
  const TABLE: readonly [what: string, next: typeof live & { data?: object }, same: boolean][] = [
    ['the time of a managedFields entry', { ...live, metadata: { ...live.metadata, managedFields: later } }, true],
    ['the order of keys', { metadata: live.metadata, kind: 'A' }, true],
    ['a value', { ...live, data: {} }, false],
    ['a label', { ...live, metadata: { ...live.metadata, name: 'b' } }, false],
    ['a managedFields entry', { ...live, metadata: { ...live.metadata, managedFields: [...later, ...later] } }, false],
    [
      'an owner reference',
      { ...live, metadata: { ...live.metadata, managedFields: [{ ...later[0]!, manager: 'n' as 'm' }] } },
      false,
    ],
  ]
  for (const [what, next, same] of TABLE) {
    it(`returns ${same} if the objects differ in ${what}`, () => assert.equal(equalIgnoringTimes(next, live), same))
  }
})
