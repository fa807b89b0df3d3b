import assert from 'node:assert/strict'
import { describe, it } from 'node:test'

import * as fc from 'fast-check'

import {
  canonicalCidr,
  canonicalIp,
  validateCidr,
  validateIp,
  validateLegacyCidr,
  validateLegacyIp,
} from './addresses.ts'
import { fieldPath } from './field-path.ts'

const notIp = 'must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)'
const notCidr = 'must be a valid CIDR value, (e.g. 10.9.8.0/24 or 2001:db8::/64)'

describe('validateIp()', () => {
  for (const [text, detail] of [
    ['1.2.3.4', undefined],
    ['2001:db8::1', undefined],
    ['::', undefined],
    ['1::', undefined],
    ['1.2.3', notIp],
    ['1.2.3.256', notIp],
    ['', notIp],
    ['::1::', notIp],
    ['1:2:3:4:5:6:7:8:9', notIp],
    [':1', notIp],
    ['fe80::1%eth0', notIp],
    ['1.2.3.04', 'must not have leading 0s'],
    ['::ffff:1.2.3.4', 'must not be an IPv4-mapped IPv6 address'],
    ['2001:DB8::1', 'must be in canonical form ("2001:db8::1")'],
    ['1:0:0:2:0:0:0:3', 'must be in canonical form ("1:0:0:2::3")'],
    ['::1.2.3.4', 'must be in canonical form ("::102:304")'],
  ] as const) {
    it(`${detail === undefined ? 'accepts' : 'rejects'} "${text}"`, () => {
      assert.deepEqual(
        validateIp(fieldPath('f'), text).map((error) => error.detail),
        detail === undefined ? [] : [detail],
      )
    })
  }

  it('accepts legacy formats in old fields', () => {
    assert.deepEqual(validateLegacyIp(fieldPath('f'), '01.2.3.4'), [])
    assert.deepEqual(validateLegacyIp(fieldPath('f'), '::ffff:1.2.3.4'), [])
    assert.equal(validateLegacyIp(fieldPath('f'), '01.2.3.4', { strict: true }).length, 1)
    assert.deepEqual(validateLegacyIp(fieldPath('f'), '01.2.3.4', { strict: true, old: ['01.2.3.4'] }), [])
    assert.equal(validateLegacyIp(fieldPath('f'), 'x')[0]?.origin, 'format=ip-sloppy')
  })

  it('returns one canonical form for each address', () => {
    fc.assert(
      fc.property(fc.oneof(fc.ipV4(), fc.ipV6()), (text) => {
        const canonical = canonicalIp(text)!
        assert.equal(canonicalIp(canonical), canonical)
        if (!text.toLowerCase().includes('::ffff')) assert.deepEqual(validateIp(fieldPath('f'), canonical), [])
      }),
    )
  })
})

describe('validateCidr()', () => {
  for (const [text, detail] of [
    ['10.0.0.0/8', undefined],
    ['::/0', undefined],
    ['2001:db8::/64', undefined],
    ['10.0.0.0', notCidr],
    ['10.0.0.0/33', notCidr],
    ['::/129', notCidr],
    ['10.0.0.0/-1', notCidr],
    ['10.0.0.0/08', 'must not have leading 0s in IP or prefix length'],
    ['::ffff:1.2.3.0/120', 'must not have an IPv4-mapped IPv6 address'],
    ['10.0.0.1/8', 'must not have bits set beyond the prefix length'],
    ['2001:DB8::/64', 'must be in canonical form ("2001:db8::/64")'],
  ] as const) {
    it(`${detail === undefined ? 'accepts' : 'rejects'} "${text}"`, () => {
      assert.deepEqual(
        validateCidr(fieldPath('f'), text).map((error) => error.detail),
        detail === undefined ? [] : [detail],
      )
    })
  }

  it('accepts legacy formats in old fields, and clears bits beyond the prefix', () => {
    assert.deepEqual(validateLegacyCidr(fieldPath('f'), '10.0.0.1/08'), [])
    assert.equal(validateLegacyCidr(fieldPath('f'), '10.0.0.1/8', { strict: true }).length, 1)
    assert.equal(canonicalCidr('10.1.2.3/08'), '10.0.0.0/8')
    assert.equal(canonicalCidr('2001:db8:1:2:3::/50'), '2001:db8:1::/50')
    assert.equal(canonicalCidr('x/1'), undefined)
  })
})
