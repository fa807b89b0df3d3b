import assert from 'node:assert/strict'
import { describe, it } from 'node:test'

import { parseBody } from './entry.ts'

describe('the body of an entry', () => {
  it('gives every integer back as it was written', () => {
    for (const number of [7, 2 ** 53 - 1, 2n ** 53n, 2n ** 53n + 1n, 2n ** 63n - 1n, -(2n ** 63n)]) {
      const { metadata } = parseBody(`"metadata":{"name":"a","generation":${number}}}`)
      assert.equal(metadata.generation, number)
    }
  })

  it('is text of one character a byte', () => {
    const { metadata } = parseBody(Buffer.from('"metadata":{"name":"é😀"}}').toString('latin1'))
    assert.equal(metadata.name, 'é😀')
  })
})
