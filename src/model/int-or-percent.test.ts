import assert from 'node:assert/strict'
import { test } from 'node:test'

import { fieldErrorText } from '#meta/validation/field-error.ts'
import { fieldPath } from '#meta/validation/field-path.ts'

import { intOrPercentValue, validateAtMostAll, validateIntOrPercent } from './int-or-percent.ts'

test('int-or-percent fields reject negative counts and invalid percentages', () => {
  const percentage =
    "a valid percent string must be a numeric string followed by an ending '%' (e.g. '1%',  or '93%', regex used for validation is '[0-9]+%')"
  const table: readonly (readonly [number | string | undefined, readonly string[]])[] = [
    [undefined, []],
    [0, []],
    [-1, ['f: Invalid value: -1: must be greater than or equal to 0']],
    ['100%', []],
    ['5', [`f: Invalid value: "5": ${percentage}`]],
    ['-5%', [`f: Invalid value: "-5%": ${percentage}`]],
  ]
  for (const [value, errors] of table)
    assert.deepEqual(validateIntOrPercent(fieldPath('f'), value).map(fieldErrorText), errors)
})

test('int-or-percent fields reject percentages above 100', () => {
  const texts = (value: number | string | undefined): string[] =>
    validateAtMostAll(fieldPath('f'), value).map(fieldErrorText)
  for (const fine of [undefined, 1000, '100%', 'x']) assert.deepEqual(texts(fine), [])
  assert.deepEqual(texts('101%'), ['f: Invalid value: "101%": must not be greater than 100%'])
})

test('int-or-percent fields treat 0 and 0% alike', () => {
  assert.deepEqual([0, '0%', 'x', '25%', 3].map(intOrPercentValue), [0, 0, 0, 25, 3])
})
