import assert from 'node:assert/strict'
import { SocketAddress } from 'node:net'
import { describe, it } from 'node:test'

import * as fc from 'fast-check'

import { cidr, ip } from './list-kinds.ts'

/** Undefined when it is refused. */
function tried(kind: typeof ip, text: string): string | undefined {
  try {
    return kind.parse(text)
  } catch {
    return undefined
  }
}

describe('canonical form of an IP address flag', () => {
  for (const [text, expected] of [
    ['10.0.0.1', '10.0.0.1'],
    ['::ffff:10.0.0.1', '10.0.0.1'],
    ['2001:DB8:0:0:1:0:0:1', '2001:db8::1:0:0:1'],
    ['0:0:0:0:0:0:0:0', '::'],
    ['1:0:2:0:3:0:4:0', '1:0:2:0:3:0:4:0'],
    ['1::', '1::'],
    ['64:ff9b::1.2.3.4', '64:ff9b::102:304'],
    ['fe80::1%eth0', undefined],
    ['01.2.3.4', undefined],
    ['', ''],
    ['1.2.3', undefined],
  ] as const) {
    it(`${expected === undefined ? 'does not exist' : `is "${expected}"`} for "${text}"`, () =>
      assert.equal(tried(ip, text), expected))
  }

  it('agrees with Node about every IPv6 address', () => {
    const words = fc.array(fc.oneof(fc.constant(0), fc.nat(0xffff)), { minLength: 8, maxLength: 8 })
    fc.assert(
      fc.property(words, (all) => {
        const address = all.map((word) => word.toString(16)).join(':')
        // The system writes the last 32 bits of some ranges dotted; Go does not, except for mapped IPv4.
        fc.pre(all.slice(0, 5).some((word) => word !== 0))
        assert.equal(ip.parse(address), new SocketAddress({ address, family: 'ipv6' }).address)
      }),
    )
  })
})

describe('canonical form of a CIDR flag', () => {
  for (const [text, expected] of [
    ['10.1.2.3/8', '10.0.0.0/8'],
    ['10.1.2.255/25', '10.1.2.128/25'],
    ['10.1.2.3/32', '10.1.2.3/32'],
    ['10.1.2.3/0', '0.0.0.0/0'],
    ['fd00:1:2:3:4::/64', 'fd00:1:2:3::/64'],
    ['fd00::1/128', 'fd00::1/128'],
    ['::ffff:10.1.2.3/104', '10.0.0.0/8'],
    ['10.0.0.0/08', '10.0.0.0/8'],
    ['10.0.0.0/33', undefined],
    ['10.0.0.0/', undefined],
    ['10.0.0.0/-1', undefined],
    ['10.0.0.0', undefined],
    ['/8', undefined],
  ] as const) {
    it(`${expected === undefined ? 'does not exist' : `is "${expected}"`} for "${text}"`, () =>
      assert.equal(tried(cidr, text), expected))
  }
})
