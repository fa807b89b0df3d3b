import assert from 'node:assert/strict'
import { describe, it } from 'node:test'

import type { NodeSelectorTerm } from '#apis/core/v1.ts'
import { fieldErrorText } from '#meta/validation/field-error.ts'
import { fieldPath } from '#meta/validation/field-path.ts'

import { validateNodeSelector } from './affinity.ts'

const complaints = (term: NodeSelectorTerm, invalidValues = false): string[] =>
  validateNodeSelector(fieldPath('s'), { nodeSelectorTerms: [term] }, invalidValues).map((error) =>
    fieldErrorText(error).replace(/ \(e\.g\. .*$/, ' …'),
  )

const at = 's.nodeSelectorTerms[0]'

describe('validation of a node selector', () => {
  it('requires at least one term', () => {
    assert.deepEqual(validateNodeSelector(fieldPath('s'), { nodeSelectorTerms: [] }).map(fieldErrorText), [
      's.nodeSelectorTerms: Required value: must have at least one node selector term',
    ])
    assert.deepEqual(complaints({}), [])
  })

  it('checks label requirements', () => {
    const matchExpressions = [
      { key: 'a', operator: 'In' },
      { key: 'a', operator: 'Exists', values: ['x'] },
      { key: 'a', operator: 'Lt', values: ['1', '2'] },
    ]
    assert.deepEqual(complaints({ matchExpressions }), [
      `${at}.matchExpressions[0].values: Required value: must be specified when \`operator\` is 'In' or 'NotIn'`,
      `${at}.matchExpressions[1].values: Forbidden: may not be specified when \`operator\` is 'Exists' or 'DoesNotExist'`,
      `${at}.matchExpressions[2].values: Required value: must be specified single value when \`operator\` is 'Lt' or 'Gt'`,
    ])
  })

  it('keeps invalid values of an old object', () => {
    const term = { matchExpressions: [{ key: 'a', operator: 'In', values: ['!'] }] }
    assert.equal(complaints(term).length, 1)
    assert.deepEqual(complaints(term, true), [])
  })

  it('checks field requirements', () => {
    const matchFields = [
      { key: 'metadata.name', operator: 'In', values: ['n'] },
      { key: 'metadata.name', operator: 'NotIn', values: ['a', 'b'] },
      { key: 'spec.x', operator: 'Exists' },
    ]
    assert.deepEqual(complaints({ matchFields }), [
      `${at}.matchFields[1].values: Required value: must be only one value when \`operator\` is 'In' or 'NotIn' for node field selector`,
      `${at}.matchFields[2].operator: Invalid value: "Exists": not a valid selector operator`,
      `${at}.matchFields[2].key: Invalid value: "spec.x": not a valid field selector key`,
    ])
  })
})
