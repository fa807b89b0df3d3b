import assert from 'node:assert/strict'
import { test } from 'node:test'

import { countIndexes, sharedIndex } from './indexes.ts'

test('index intervals of a Job are counted', () => {
  for (const [text, count] of [
    ['', 0],
    ['0', 1],
    ['0-3,5,7-8', 7],
  ] as const) {
    assert.equal(countIndexes(text, 10), count)
  }
})

test('index intervals of a Job are rejected if they are malformed, unordered or too large', () => {
  const table: readonly (readonly [string, string])[] = [
    ['x', 'cannot convert string to integer for index: "x"'],
    ['-1', 'cannot convert string to integer for index: ""'],
    ['1,', 'cannot convert string to integer for index: ""'],
    ['10', 'too large index: "10"'],
    ['1-12', 'too large index: "12"'],
    ['3-3', 'non-increasing order, previous: 3, current: 3'],
    ['3,2', 'non-increasing order, previous: 3, current: 2'],
    ['1-4,4', 'non-increasing order, previous: 4, current: 4'],
    [
      '1-2-3',
      `the fragment "1-2-3" violates the requirement that an index interval can have at most two parts separated by '-'`,
    ],
  ]
  for (const [text, message] of table) assert.throws(() => countIndexes(text, 10), { message }, text)
})

test('two lists of index intervals of a Job are searched for a common index, and malformed intervals are ignored', () => {
  assert.equal(sharedIndex('0-3,8', '5,7-8', 10), 8)
  assert.equal(sharedIndex('0-3', '2', 10), 2)
  assert.equal(sharedIndex('x,4', '4', 10), 4)
  assert.equal(sharedIndex('0,2', '1,3', 10), undefined)
  assert.equal(sharedIndex('', '1', 10), undefined)
})
