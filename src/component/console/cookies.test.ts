import assert from 'node:assert/strict'
import { describe, it } from 'node:test'

import { cookieValues } from './cookies.ts'

describe('cookieValues()', () => {
  const rows: readonly (readonly [header: string, name: string, values: readonly string[]])[] = [
    ['a=1; b=2', 'b', ['2']],
    ['a=1; a=2', 'a', ['1', '2']],
    [' a = 1 ;b=2', 'a', ['1']],
    ['a=1=2', 'a', ['1=2']],
    ['ab=1', 'a', []],
    ['a', 'a', []],
    ['', 'a', []],
  ]
  for (const [header, name, values] of rows) {
    it(`reads ${JSON.stringify(values)} of "${name}" from "${header}"`, () => {
      assert.deepEqual(cookieValues(header, name), values)
    })
  }
})
