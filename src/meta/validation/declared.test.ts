import assert from 'node:assert/strict'
import { test } from 'node:test'

import { atLeast, atMost, itemLimit, longName, oneMember, requiredName, shortName, uniqueItems } from './declared.ts'
import { fieldErrorText } from './field-error.ts'

test('limits let pass what is not there', () => {
  assert.deepEqual([...atLeast('f', undefined, 1), ...atMost('f', undefined, 1)], [])
  assert.deepEqual([...atLeast('f', 1, 1), ...atMost('f', 1, 1)], [])
  assert.deepEqual([...atLeast('f', 0, 1), ...atMost('f', 2, 1)].map(fieldErrorText), [
    'f: Invalid value: 0: must be greater than or equal to 1',
    'f: Invalid value: 2: must be less than or equal to 1',
  ])
})

test('a union is judged again only when another member is chosen', () => {
  interface Union {
    readonly a?: object
    readonly b?: object | null
  }
  const judge = (next: Union, old?: Union): string[] => oneMember('f', ['a', 'b'], next, old).map(fieldErrorText)
  assert.deepEqual(judge({ a: {} }), [])
  assert.deepEqual(judge({ b: null }), ['f: Invalid value: "": must specify one of: `a`, `b`'])
  assert.deepEqual(judge({ a: {}, b: {} }), ['f: Invalid value: "{a, b}": must specify exactly one of: `a`, `b`'])
  assert.deepEqual(judge({ a: {}, b: {} }, { a: {}, b: {} }), [])
  assert.equal(judge({ a: {}, b: {} }, { a: {} }).length, 1)
})

test('names count their bytes', () => {
  assert.deepEqual(
    shortName('f', 'x'.repeat(64)).map(({ detail }) => detail),
    ['must be no more than 63 bytes'],
  )
  assert.deepEqual(
    longName('f', 'x'.repeat(254)).map(({ detail }) => detail),
    ['must be no more than 253 bytes'],
  )
  assert.deepEqual(requiredName('f', undefined, longName).map(fieldErrorText), ['f: Required value'])
})

test('lists have limits and no repetitions', () => {
  assert.deepEqual(itemLimit('f', [1, 2], 2), [])
  assert.deepEqual(itemLimit('f', [1, 2], 1).map(fieldErrorText), ['f: Too many: 2: must have at most 1 item'])
  assert.deepEqual(uniqueItems('f', ['a', 'b', 'a'], (item) => item).map(fieldErrorText), [
    'f[2]: Duplicate value: "a"',
  ])
})
