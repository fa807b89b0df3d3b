/** Tests sizes in words. */
import assert from 'node:assert/strict'
import { describe, it } from 'node:test'

import { bytesText, coresText } from './sizes.ts'

describe('sizes in words', () => {
  for (const [text, cores] of [
    ['16', '16 cores'],
    ['1', '1 core'],
    ['1500m', '1.5 cores'],
    ['12345', '12,345 cores'],
    ['x', ''],
    [undefined, ''],
  ] as const) {
    it(`writes "${cores}" for CPU ${text}`, () => assert.equal(coresText(text), cores))
  }
  for (const [text, bytes] of [
    ['65011712Ki', '62 GiB'],
    ['1536Mi', '1.5 GiB'],
    ['100', '100 bytes'],
    ['0', '0 bytes'],
    ['9Ei', '8,192 PiB'],
    ['', ''],
  ] as const) {
    it(`writes "${bytes}" for memory ${text}`, () => assert.equal(bytesText(text), bytes))
  }
})
