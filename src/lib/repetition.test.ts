import assert from 'node:assert/strict'
import { describe, it } from 'node:test'

import { createRepetition, firstByKey } from './repetition.ts'

describe('createRepetition() for list items', () => {
  it('returns true for every occurrence of a value but the first', () => {
    assert.deepEqual(['a', 'b', 'a', 'a', '__proto__', '__proto__'].map(createRepetition()), [
      false,
      false,
      true,
      true,
      false,
      true,
    ])
  })
})

describe('firstByKey', () => {
  it('keeps the first of several items with the same key', () => {
    const items = [
      { name: 'a', n: 1 },
      { name: 'b', n: 2 },
      { name: 'a', n: 3 },
    ]
    assert.deepEqual(
      [...firstByKey(items, ({ name }) => name)],
      [
        ['a', items[0]],
        ['b', items[1]],
      ],
    )
  })
})
