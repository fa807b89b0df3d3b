import assert from 'node:assert/strict'
import { Buffer } from 'node:buffer'
import { describe, it } from 'node:test'

import fc from 'fast-check'

import { normalizeBase64 } from './base64.ts'

describe('normalizeBase64', () => {
  it('keeps canonical text', () => {
    fc.assert(
      fc.property(fc.uint8Array(), (bytes) => {
        const text = Buffer.from(bytes).toString('base64')
        assert.equal(normalizeBase64(text), text)
      }),
    )
  })

  for (const [text, expected] of [
    ['YR==', 'YQ=='],
    ['YWJ=', 'YWI='],
    ['Y\nQ=\r\n=\n', 'YQ=='],
    ['\n', ''],
  ] as const) {
    it(`normalizes ${JSON.stringify(text)} to ${expected}`, () => assert.equal(normalizeBase64(text), expected))
  }

  // From Go's encoding/base64.
  for (const [text, at] of [
    ['?', 0],
    ['Y', 0],
    ['YQ', 0],
    ['YQ=', 3],
    ['=', 0],
    ['Y=', 1],
    ['YQ=a', 2],
    ['YQ==a', 4],
    ['YWE==', 4],
    ['YWJjé', 4],
    ['YQ==\n=', 5],
    ['YWJj_w==', 4],
  ] as const) {
    it(`rejects ${JSON.stringify(text)} at byte ${at}`, () => {
      assert.throws(() => normalizeBase64(text), { message: `illegal base64 data at input byte ${at}` })
    })
  }
})
