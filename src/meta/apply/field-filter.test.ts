import assert from 'node:assert/strict'
import { describe, it } from 'node:test'

import { filterFields } from './field-filter.ts'
import { fieldPaths, setOf } from './field-set.ts'
import { encodeFieldsV1 } from './fields-v1.ts'

const all = setOf(
  ['f:status'],
  ['f:status', 'f:phase'],
  ['f:spec', 'f:containers', 'k:{"name":"a"}'],
  ['f:spec', 'f:containers', 'k:{"name":"a"}', 'f:resources', 'f:limits'],
  ['f:spec', 'f:containers', 'k:{"name":"a"}', 'f:image'],
)

describe('filter of managed fields', () => {
  it('excludes the given fields with everything below', () => {
    const left = filterFields(all, { mode: 'exclude', fields: fieldPaths('status', 'spec.containers') })
    assert.deepEqual(encodeFieldsV1(left), {})
  })

  it('includes only fields that match a pattern', () => {
    const pattern = setOf(['f:spec', 'f:containers', '*', 'f:resources'])
    assert.deepEqual(encodeFieldsV1(filterFields(all, { mode: 'include', fields: pattern })), {
      'f:spec': { 'f:containers': { 'k:{"name":"a"}': { '.': {}, 'f:resources': { 'f:limits': {} } } } },
    })
  })

  it('includes all fields if it is absent', () => assert.equal(filterFields(all, undefined), all))
})
