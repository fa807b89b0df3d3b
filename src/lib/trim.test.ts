import assert from 'node:assert/strict'
import { describe, it } from 'node:test'

import * as fc from 'fast-check'

import { assertGrowth } from './growth.fixture.ts'
import { trimEndOf, trimStartOf } from './trim.ts'

describe('trimEndOf and trimStartOf', () => {
  it('return the same as a regular expression', () => {
    fc.assert(
      fc.property(fc.string({ unit: fc.constantFrom('/', 'a') }), (text) => {
        assert.equal(trimEndOf(text, '/'), text.replace(/\/+$/, ''))
        assert.equal(trimStartOf(text, '/'), text.replace(/^\/+/, ''))
      }),
    )
  })

  it('take linear time for a long run of characters inside the text', () => {
    assertGrowth(
      500_000,
      (size) => `a${'/'.repeat(size)}b`,
      (text) => trimEndOf(text, '/'),
    )
  })
})
