import assert from 'node:assert/strict'
import { describe, it } from 'node:test'

import * as fc from 'fast-check'

import * as asn1 from './asn1.ts'

const hex = (bytes: Buffer): string => bytes.toString('hex')

describe('DER writer', () => {
  const vectors: [string, Buffer, string][] = [
    ['zero', asn1.integer(0), '020100'],
    ['127', asn1.integer(127), '02017f'],
    ['128 with a leading zero', asn1.integer(128), '02020080'],
    ['256', asn1.integer(256), '02020100'],
    ['an integer without leading zeros of its magnitude', asn1.integer(Buffer.from('0000ff', 'hex')), '020200ff'],
    ['true', asn1.boolean(true), '0101ff'],
    ['null', asn1.nothing(), '0500'],
    ['the identifier sha256WithRSAEncryption', asn1.oid('1.2.840.113549.1.1.11'), '06092a864886f70d01010b'],
    ['the identifier of common name', asn1.oid('2.5.4.3'), '0603550403'],
    ['an identifier whose second arc is above 39', asn1.oid('2.999.3'), '0603883703'],
    ['a bit string with bits 5 and 6', asn1.flagBits([5, 6]), '03020106'],
    ['a bit string with bits 0 and 2', asn1.flagBits([0, 2]), '030205a0'],
    ['a bit string with bit 8 in a second byte', asn1.flagBits([8]), '0303070080'],
    ['an empty bit string', asn1.flagBits([]), '030100'],
    ['a time in 2049 as UTCTime', asn1.time(Date.UTC(2049, 11, 31, 23, 59, 59)), '170d3439313233313233353935395a'],
    ['a time in 2050 as GeneralizedTime', asn1.time(Date.UTC(2050, 0, 1)), '180f32303530303130313030303030305a'],
    ['a time in 1949 as GeneralizedTime', asn1.time(Date.UTC(1949, 0, 1)), '180f31393439303130313030303030305a'],
    ['a set in sorted order', asn1.setOf(asn1.integer(2), asn1.integer(1)), '3106020101020102'],
    ['a length of 128', asn1.octetString(Buffer.alloc(128)).subarray(0, 3), '048180'],
    ['a length of 256', asn1.octetString(Buffer.alloc(256)).subarray(0, 4), '04820100'],
    ['a length of 65536', asn1.octetString(Buffer.alloc(65_536)).subarray(0, 5), '0483010000'],
  ]
  for (const [what, bytes, expected] of vectors) it(`writes ${what}`, () => assert.equal(hex(bytes), expected))

  it('rejects values that DER cannot represent', () => {
    for (const wrong of [() => asn1.integer(-1), () => asn1.integer(1.5), () => asn1.oid('1'), () => asn1.oid('1.x')]) {
      assert.throws(wrong, asn1.Asn1Error)
    }
    assert.throws(() => asn1.time(Date.UTC(10_000, 0)), asn1.Asn1Error)
    assert.throws(() => asn1.time(Number.NaN), asn1.Asn1Error)
  })
})

describe('DER reader', () => {
  it('round-trips written values', () => {
    fc.assert(
      fc.property(fc.nat(), (value) => asn1.readSmallInteger(asn1.readDer(asn1.integer(value & 0x7fffffff))) >= 0),
    )
    fc.assert(
      fc.property(fc.array(fc.nat({ max: 2 ** 40 }), { maxLength: 8 }), fc.nat({ max: 39 }), (arcs, second) => {
        const dotted = [1, second, ...arcs].join('.')
        assert.equal(asn1.readOid(asn1.readDer(asn1.oid(dotted))), dotted)
      }),
    )
    fc.assert(
      fc.property(fc.string({ unit: 'grapheme' }), (text) => {
        assert.equal(asn1.readText(asn1.readDer(asn1.utf8String(text))), text)
      }),
    )
    fc.assert(
      fc.property(fc.uniqueArray(fc.nat({ max: 15 })), (bits) => {
        assert.deepEqual(
          asn1.readFlagBits(asn1.readDer(asn1.flagBits(bits))),
          bits.toSorted((a, b) => a - b),
        )
      }),
    )
    fc.assert(
      fc.property(fc.integer({ min: -5_000_000_000, max: 250_000_000_000 }), (seconds) => {
        assert.equal(asn1.readTime(asn1.readDer(asn1.time(seconds * 1000))), seconds * 1000)
      }),
    )
  })

  const refused: [string, string][] = [
    ['empty input', ''],
    ['a tag without a length', '30'],
    ['a truncated length', '3082'],
    ['contents shorter than the length', '04050102'],
    ['an indefinite length', '30800000'],
    ['a length of five bytes', '308500000000ff'],
    ['a short length in long form', '04810101'],
    ['a length with a leading zero', '0482008001'],
    ['a tag of several bytes', '1f8101'],
    ['bytes after the end', '050000'],
  ]
  for (const [what, bytes] of refused) {
    it(`rejects ${what}`, () => assert.throws(() => asn1.readDer(Buffer.from(bytes, 'hex')), asn1.Asn1Error))
  }

  const misfits: [string, string, (found: asn1.DerElement) => unknown][] = [
    ['nested elements of a primitive element', '0400', (found) => found.children()],
    ['a negative integer', '0201ff', asn1.readInteger],
    ['a padded integer', '02020001', asn1.readInteger],
    ['an empty integer', '0200', asn1.readInteger],
    ['an integer of 32 bits as small', '02050080000000', asn1.readSmallInteger],
    ['a boolean with value 1', '010101', asn1.readBoolean],
    ['a truncated identifier', '06022a86', asn1.readOid],
    ['a padded identifier', '06032a8001', asn1.readOid],
    ['an identifier arc without an end', `060b2a${'ff'.repeat(9)}7f`, asn1.readOid],
    ['the date February 31', '170d3236303233313030303030305a', asn1.readTime],
    ['a time with an offset', '17113236303130313030303030302b30313030', asn1.readTime],
    ['a time without seconds', '170b323630313031303030305a', asn1.readTime],
    ['text that is not UTF-8', '0c01ff', asn1.readText],
    ['a BMPString with an odd number of bytes', '1e0100', asn1.readText],
    ['a bit string with unused bits', '03020101', asn1.readBitString],
  ]
  for (const [what, bytes, read] of misfits) {
    it(`rejects ${what}`, () => assert.throws(() => read(asn1.readDer(Buffer.from(bytes, 'hex'))), asn1.Asn1Error))
  }

  it('rejects more bytes than the limit and deeper nesting than any certificate has', () => {
    assert.throws(() => asn1.readDer(asn1.octetString(Buffer.alloc(100)), 50), /limit/)
    let nested = asn1.nothing()
    for (let level = 0; level < 40; level++) nested = asn1.sequence(nested)
    const descend = (found: asn1.DerElement): void => {
      for (const child of found.children()) if (child.tag === asn1.TAG.sequence) descend(child)
    }
    assert.throws(() => descend(asn1.readDer(nested)), /deeper/)
  })

  it('throws only X509Error for any bytes', () => {
    const walk = (found: asn1.DerElement): void => {
      for (const read of [asn1.readOid, asn1.readInteger, asn1.readText, asn1.readTime, asn1.readFlagBits]) {
        quietly(() => read(found))
      }
      quietly(() => found.children().forEach(walk))
    }
    const quietly = (task: () => unknown): void => {
      try {
        task()
      } catch (error) {
        assert.ok(error instanceof asn1.Asn1Error, String(error))
      }
    }
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 200 }), (bytes) => quietly(() => walk(asn1.readDer(Buffer.from(bytes))))),
      { numRuns: 2000 },
    )
  })
})
