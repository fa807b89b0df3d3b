import assert from 'node:assert/strict'
import { describe, it } from 'node:test'

import { fieldPath } from '#meta/validation/field-path.ts'

import { cidrWarnings, ipFamilyOf, validateEndpointIp } from './addresses.ts'

describe('validateEndpointIp()', () => {
  const cases: [string, string | undefined][] = [
    ['10.1.2.3', undefined],
    ['fd00::1', undefined],
    ['224.0.1.1', undefined],
    ['x', 'must be a valid IP address'],
    ['0.0.0.0', 'may not be unspecified (0.0.0.0)'],
    ['::', 'may not be unspecified (::)'],
    ['127.1.2.3', 'may not be in the loopback range (127.0.0.0/8, ::1/128)'],
    ['::1', 'may not be in the loopback range (127.0.0.0/8, ::1/128)'],
    ['169.254.0.1', 'may not be in the link-local range (169.254.0.0/16, fe80::/10)'],
    ['febf::1', 'may not be in the link-local range (169.254.0.0/16, fe80::/10)'],
    ['224.0.0.9', 'may not be in the link-local multicast range (224.0.0.0/24, ff02::/10)'],
    ['ff32::1', 'may not be in the link-local multicast range (224.0.0.0/24, ff02::/10)'],
  ]
  for (const [text, complaint] of cases) {
    it(`${complaint === undefined ? 'accepts' : `returns the error "${complaint}" for`} ${text}`, () => {
      assert.equal(validateEndpointIp(fieldPath('f'), text)[0]?.detail, complaint)
    })
  }
})

describe('ipFamilyOf()', () => {
  it('returns IPv4 for an IPv4-mapped IPv6 address', () => {
    assert.deepEqual(['1.2.3.4', '::ffff:1.2.3.4', 'fd00::', 'x'].map(ipFamilyOf), ['IPv4', 'IPv4', 'IPv6', undefined])
  })
})

describe('cidrWarnings()', () => {
  const cases: [string, string[]][] = [
    ['10.0.0.0/8', []],
    ['x', []],
    [
      '10.0.0.1/8',
      ['f: CIDR value "10.0.0.1/8" is ambiguous in this context (should be "10.0.0.0/8" or "10.0.0.1/32"?)'],
    ],
    ['010.0.0.0/8', ['f: non-standard CIDR value "010.0.0.0/8" is invalid: use "10.0.0.0/8"']],
    ['FD00::/8', ['f: IPv6 CIDR value "FD00::/8" should be in RFC 5952 canonical format ("fd00::/8")']],
  ]
  for (const [text, warnings] of cases) {
    it(`returns ${warnings.length === 0 ? 'no warnings' : 'warnings'} for ${text}`, () =>
      assert.deepEqual(cidrWarnings(fieldPath('f'), text), warnings))
  }
})
