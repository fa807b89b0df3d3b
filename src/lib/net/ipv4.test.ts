import assert from 'node:assert/strict'
import { isIPv4 } from 'node:net'
import { describe, it } from 'node:test'

import * as fc from 'fast-check'

import { parseDotted } from './ipv4.ts'

describe('parseDotted() of an IPv4 address', () => {
  it('returns the address as a number', () => {
    assert.equal(parseDotted('0.0.0.0', false), 0)
    assert.equal(parseDotted('10.1.2.3', false), 0x0a010203)
    assert.equal(parseDotted('255.255.255.255', false), 0xffffffff)
  })

  it('accepts leading zeros only with the option sloppy', () => {
    assert.equal(parseDotted('010.01.002.0003', true), 0x0a010203)
    assert.equal(parseDotted('010.1.2.3', false), undefined)
  })

  it('rejects texts that are no addresses', () => {
    for (const text of [
      '',
      '1',
      '1.2.3',
      '1.2.3.',
      '.1.2.3',
      '1..2.3',
      '1.2.3.4.5',
      '1.2.3.256',
      '1.2.3.4 ',
      '1.2.3.a',
    ]) {
      assert.equal(parseDotted(text, true), undefined, text)
    }
  })

  it('accepts the same texts as Node', () => {
    const text = fc.array(fc.constantFrom('0', '1', '25', '255', '256', '.', '.', '.', 'a'), { maxLength: 9 })
    fc.assert(
      fc.property(text, (parts) => {
        const joined = parts.join('')
        assert.equal(parseDotted(joined, false) !== undefined, isIPv4(joined), joined)
      }),
    )
  })
})
