import assert from 'node:assert/strict'
import { describe, it } from 'node:test'

import { fnv128a } from './fnv128.ts'

describe('fnv128a', () => {
  it('equals the published test vectors', () => {
    const cases = {
      '': '6c62272e07bb014262b821756295c58d',
      a: 'd228cb696f1a8caf78912b704e4a8964',
      foobar: '343e1662793c64bf6f0d3597ba446f18',
    }
    for (const [text, hash] of Object.entries(cases)) assert.equal(fnv128a(Buffer.from(text)), hash)
  })
})
