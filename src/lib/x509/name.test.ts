import assert from 'node:assert/strict'
import { describe, it } from 'node:test'

import * as fc from 'fast-check'

import { encodeIp, formatIp } from './address.ts'
import * as asn1 from './asn1.ts'
import { formatName } from './distinguished-name.ts'
import { X509Error } from './error.ts'
import { encodeAlternativeNames, encodeName, nameOf, readAlternativeNames, readName } from './name.ts'
import { splitUsages, usageName } from './usage.ts'

describe('distinguished names of certificates', () => {
  it('round-trip', () => {
    fc.assert(
      fc.property(fc.string({ unit: 'grapheme' }), fc.array(fc.string()), (commonName, organizations) => {
        const name = nameOf({ commonName, organizations })
        assert.deepEqual(readName(asn1.readDer(encodeName(name))), name)
      }),
    )
  })

  it('are parsed if several attributes share one RDN, as Go writes organizations', () => {
    const attribute = (oid: string, value: string): Buffer => asn1.sequence(asn1.oid(oid), asn1.utf8String(value))
    const der = asn1.sequence(
      asn1.setOf(attribute('2.5.4.10', 'a'), attribute('2.5.4.10', 'b')),
      asn1.setOf(attribute('2.5.4.3', 'user')),
    )
    const name = readName(asn1.readDer(der))
    assert.equal(name.commonName, 'user')
    assert.deepEqual(name.organizations, ['a', 'b'])
    assert.equal(formatName(name), 'CN=user,O=b,O=a')
  })

  it('are printed with special characters escaped', () => {
    assert.equal(
      formatName(nameOf({ commonName: 'a,b+c', organizations: ['system:nodes'] })),
      String.raw`CN=a\,b\+c,O=system:nodes`,
    )
  })
})

describe('alternative names of a certificate', () => {
  it('are returned by type', () => {
    const names = {
      dns: ['kubernetes.default.svc', '*.example.com'],
      ips: ['10.96.0.1', 'fd00::1', '::'],
      uris: ['spiffe://cluster.local/ns/a/sa/b'],
      emails: ['a@example.com'],
    }
    const der = encodeAlternativeNames(names)
    assert.ok(der !== undefined)
    assert.deepEqual(readAlternativeNames(asn1.readDer(der)), names)
    assert.equal(encodeAlternativeNames({}), undefined)
  })

  it('are rejected if they are ambiguous', () => {
    for (const dns of ['', 'a b', 'good.example\0.evil.example', 'bücher.example']) {
      assert.throws(() => encodeAlternativeNames({ dns: [dns] }), X509Error)
    }
    for (const ip of ['', '1.2.3', 'fe80::1%eth0', '::1::', '10.0.0.1/24']) {
      assert.throws(() => encodeAlternativeNames({ ips: [ip] }), X509Error)
    }
  })
})

describe('IP addresses in a certificate', () => {
  const forms: [string, string, string][] = [
    ['127.0.0.1', '7f000001', '127.0.0.1'],
    ['::ffff:10.1.2.3', '0a010203', '10.1.2.3'],
    ['::', '00'.repeat(16), '::'],
    ['::1', `${'00'.repeat(15)}01`, '::1'],
    ['2001:DB8::', `20010db8${'00'.repeat(12)}`, '2001:db8::'],
    ['2001:db8:0:0:1:0:0:1', '20010db8000000000001000000000001', '2001:db8::1:0:0:1'],
    ['1:2:3:4:5:6:7:8', '00010002000300040005000600070008', '1:2:3:4:5:6:7:8'],
    ['64:ff9b::192.0.2.33', `0064ff9b${'00'.repeat(8)}c0000221`, '64:ff9b::c000:221'],
    ['1:0:2:3:4:5:6:7', '00010000000200030004000500060007', '1:0:2:3:4:5:6:7'],
  ]
  for (const [text, hex, shown] of forms) {
    it(`are encoded from ${text}`, () => {
      assert.equal(encodeIp(text).toString('hex'), hex)
      assert.equal(formatIp(Buffer.from(hex, 'hex')), shown)
    })
  }

  it('round-trip through their text for any bytes', () => {
    const bytes = fc.oneof(fc.ipV4(), fc.ipV6()).map(encodeIp)
    fc.assert(fc.property(bytes, (ip) => assert.deepEqual(encodeIp(formatIp(ip)), ip)))
    assert.throws(() => formatIp(Buffer.alloc(5)), X509Error)
  })
})

describe('key usages of a certificate', () => {
  it('are split into bits and identifiers, without repetition', () => {
    assert.deepEqual(splitUsages(['client auth', 'signing', 'digital signature', 'key encipherment', 's/mime']), {
      bits: [0, 2],
      oids: ['1.3.6.1.5.5.7.3.2', '1.3.6.1.5.5.7.3.4'],
    })
    assert.equal(usageName(0), 'digital signature')
    assert.equal(usageName('1.3.6.1.5.5.7.3.4'), 'email protection')
    assert.equal(usageName('1.2.3'), '1.2.3')
  })

  it("are rejected with upstream's message if they are unknown", () => {
    assert.throws(() => splitUsages(['server auth', 'a', '__proto__']), {
      message: 'unrecognized usage values: ["a" "__proto__"]',
    })
  })
})
