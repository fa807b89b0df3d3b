import assert from 'node:assert/strict'
import { describe, it } from 'node:test'

import type { Toleration } from '#apis/core/v1.ts'
import { fieldErrorText } from '#meta/validation/field-error.ts'
import { fieldPath } from '#meta/validation/field-path.ts'

import { validateTaintEffect, validateTolerations } from './taints.ts'

const complaints = (toleration: Toleration, comparisons = false): string[] =>
  validateTolerations(fieldPath('t'), [toleration], comparisons).map(fieldErrorText)

describe('validation of tolerations', () => {
  it('accepts a toleration of everything', () => assert.deepEqual(complaints({ operator: 'Exists' }), []))

  it('accepts comparisons of integers only if the feature gate allows them', () => {
    const toleration = { key: 'a', operator: 'Gt', value: '5' }
    assert.deepEqual(complaints(toleration, true), [])
    assert.deepEqual(complaints(toleration), [
      't[0].operator: Unsupported value: "Gt": supported values: "Equal", "Exists", "Lt", "Gt"',
    ])
    assert.deepEqual(complaints({ ...toleration, value: '05' }, true), [
      't[0].value: Invalid value: "05": must be a valid decimal integer in canonical form',
    ])
    assert.deepEqual(complaints({ ...toleration, value: '99999999999999999999' }, true), [
      't[0].value: Invalid value: "99999999999999999999": strconv.ParseInt: parsing "99999999999999999999": value out of range',
    ])
  })
})

describe('validation of taint effects', () => {
  it('rejects unknown effects, and requires one for a taint', () => {
    assert.deepEqual(validateTaintEffect(fieldPath('e'), 'NoExecute', false), [])
    assert.deepEqual(validateTaintEffect(fieldPath('e'), '', true), [])
    assert.deepEqual(validateTaintEffect(fieldPath('e'), '', false).map(fieldErrorText), ['e: Required value'])
    assert.deepEqual(validateTaintEffect(fieldPath('e'), 'X', true).map(fieldErrorText), [
      'e: Unsupported value: "X": supported values: "NoSchedule", "PreferNoSchedule", "NoExecute"',
    ])
  })
})
