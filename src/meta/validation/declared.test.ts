import assert from 'node:assert/strict'
import { test } from 'node:test'

import { atLeast, atMost, itemLimit, longName, oneMember, requiredName, shortName, uniqueItems } from './declared.ts'
import { fieldErrorText } from './field-error.ts'
import { fieldPath } from './field-path.ts'

test('declared limits accept absent values', () => {
  assert.deepEqual([...atLeast(fieldPath('f'), undefined, 1), ...atMost(fieldPath('f'), undefined, 1)], [])
  assert.deepEqual([...atLeast(fieldPath('f'), 1, 1), ...atMost(fieldPath('f'), 1, 1)], [])
  assert.deepEqual([...atLeast(fieldPath('f'), 0, 1), ...atMost(fieldPath('f'), 2, 1)].map(fieldErrorText), [
    'f: Invalid value: 0: must be greater than or equal to 1',
    'f: Invalid value: 2: must be less than or equal to 1',
  ])
})

test('declared unions are validated again only if their member changes', () => {
  interface Union {
    readonly a?: object
    readonly b?: object | null
  }
  const errorsOf = (next: Union, old?: Union): string[] =>
    oneMember(fieldPath('f'), ['a', 'b'], next, old).map(fieldErrorText)
  assert.deepEqual(errorsOf({ a: {} }), [])
  assert.deepEqual(errorsOf({ b: null }), ['f: Invalid value: "": must specify one of: `a`, `b`'])
  assert.deepEqual(errorsOf({ a: {}, b: {} }), ['f: Invalid value: "{a, b}": must specify exactly one of: `a`, `b`'])
  assert.deepEqual(errorsOf({ a: {}, b: {} }, { a: {}, b: {} }), [])
  assert.equal(errorsOf({ a: {}, b: {} }, { a: {} }).length, 1)
})

test('declared name lengths count bytes', () => {
  assert.deepEqual(
    shortName(fieldPath('f'), 'x'.repeat(64)).map(({ detail }) => detail),
    ['must be no more than 63 bytes'],
  )
  assert.deepEqual(
    longName(fieldPath('f'), 'x'.repeat(254)).map(({ detail }) => detail),
    ['must be no more than 253 bytes'],
  )
  assert.deepEqual(requiredName(fieldPath('f'), undefined, longName).map(fieldErrorText), ['f: Required value'])
})

test('declared lists have a maximum length and no duplicates', () => {
  assert.deepEqual(itemLimit(fieldPath('f'), [1, 2], 2), [])
  assert.deepEqual(itemLimit(fieldPath('f'), [1, 2], 1).map(fieldErrorText), [
    'f: Too many: 2: must have at most 1 item',
  ])
  assert.deepEqual(uniqueItems(fieldPath('f'), ['a', 'b', 'a'], (item) => item).map(fieldErrorText), [
    'f[2]: Duplicate value: "a"',
  ])
})
