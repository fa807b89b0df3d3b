import assert from 'node:assert/strict'
import { describe, it } from 'node:test'

import { formatIp } from '../net/cidr.ts'
import { parseAddr, parsePrefix } from './netip.ts'

describe('parseAddr', () => {
  it('accepts valid IP addresses', () => {
    for (const [text, canonical] of [
      ['10.0.0.1', '10.0.0.1'],
      ['::', '::'],
      ['2001:DB8:0:0::1', '2001:db8::1'],
      ['::ffff:1.2.3.4', '::ffff:1.2.3.4'],
      ['1:2:3:4:5:6:1.2.3.4', '1:2:3:4:5:6:102:304'],
      ['fe80::1%eth0', 'fe80::1'],
    ] as const) {
      const addr = parseAddr(text)
      assert.ok(typeof addr !== 'string', text)
      assert.equal(formatIp(addr), canonical)
    }
  })

  it("rejects invalid IP addresses with Go's errors", () => {
    for (const [text, message] of [
      ['', 'unable to parse IP'],
      ['1..2.3', 'IPv4 field must have at least one digit (at ".2.3")'],
      ['1.2.3.4.5', 'IPv4 address too long'],
      ['%eth0', 'missing IPv6 address'],
      ['::1%', 'zone must be a non-empty string'],
      ['12345::', 'each group must have 4 or less digits (at "12345::")'],
      ['1:2', 'address string too short'],
      ['1:', 'colon must be followed by more characters (at ":")'],
      ['1::g', 'each colon-separated field must have at least one digit (at "g")'],
      ['1:2:3:4:5:6:7::8', 'the :: must expand to at least one field of zeros'],
      ['1:1.2.3.4', 'embedded IPv4 address must replace the final 2 fields of the address (at "1.2.3.4")'],
    ] as const) {
      assert.equal(parseAddr(text), `ParseAddr(${JSON.stringify(text)}): ${message}`)
    }
  })
})

describe('parsePrefix', () => {
  it("accepts networks, and rejects invalid ones with Go's errors", () => {
    const prefix = parsePrefix('10.1.2.3/8')
    assert.ok(typeof prefix !== 'string')
    assert.equal(prefix.bits, 8)
    for (const [text, message] of [
      ['10.0.0.0', "no '/'"],
      ['10.0.0.0/33', 'prefix length out of range'],
      ['10.0.0.0/-1', 'bad bits after slash: "-1"'],
      ['10.0.0/8', 'ParseAddr("10.0.0"): IPv4 address too short'],
    ] as const) {
      assert.equal(parsePrefix(text), `netip.ParsePrefix(${JSON.stringify(text)}): ${message}`)
    }
  })
})
