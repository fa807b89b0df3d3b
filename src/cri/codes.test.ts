import assert from 'node:assert/strict'
import { test } from 'node:test'

import * as codes from './codes.ts'

test('enum values of the CRI start at zero and are unique', () => {
  for (const [name, table] of Object.entries<Record<string, number>>(codes)) {
    const numbers = Object.values(table)
    assert.deepEqual(numbers, Array.from(numbers.keys()), name)
  }
})
