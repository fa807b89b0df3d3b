import assert from 'node:assert/strict'
import { describe, it } from 'node:test'

import { exampleType } from '#kits/meta/example-kind.ts'

import { decodeFieldsV1, encodeFieldsV1 } from './fields-v1.ts'
import { reconcileFields } from './reconcile.ts'

describe('reconcileFields() after a schema change', () => {
  const spec = (fields: object): object => ({ 'f:spec': fields })
  const TABLE: readonly [what: string, owned: object, now: object][] = [
    ['the whole map if it became atomic', { 'f:selector': { 'f:a': {}, 'f:b': {} } }, { 'f:selector': {} }],
    ['the whole list if it became atomic', { 'f:steps': { '.': {}, 'v:"a"': {} } }, { 'f:steps': {} }],
    [
      'a whole struct in a list item if it became atomic',
      { 'f:ports': { 'k:{"port":1}': { 'f:options': { 'f:a': {} } } } },
      { 'f:ports': { 'k:{"port":1}': { 'f:options': {} } } },
    ],
  ]
  for (const [what, owned, now] of TABLE) {
    it(`makes the owner of a part the owner of ${what}`, () => {
      const set = reconcileFields(exampleType, decodeFieldsV1(spec(owned)))
      assert.deepEqual(encodeFieldsV1(set), spec(now))
    })
  }

  const KEPT: readonly object[] = [
    { 'f:tags': { 'v:"a"': {} }, 'f:zones': { 'f:a': { 'f:weight': {} } } },
    { 'f:selector': {}, 'f:steps': {} },
    { 'f:free': { 'f:a': { 'f:b': {} } }, 'f:gone': { 'f:x': {} }, 'f:image': { 'f:x': {} } },
  ]
  for (const owned of KEPT) {
    it(`returns the same field set if the schema still fits ${JSON.stringify(owned)}`, () => {
      const set = decodeFieldsV1(spec(owned))
      assert.equal(reconcileFields(exampleType, set), set)
    })
  }
})
