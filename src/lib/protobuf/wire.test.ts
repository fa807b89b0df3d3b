import assert from 'node:assert/strict'
import { describe, it } from 'node:test'

import * as fc from 'fast-check'

import type { Int64 } from './wire.ts'
import { ProtobufError, WireReader, WireWriter } from './wire.ts'

const write = (task: (writer: WireWriter) => void): string => {
  const writer = new WireWriter()
  task(writer)
  return writer.finish().toString('hex')
}
const reader = (hex: string): WireReader => new WireReader(Buffer.from(hex, 'hex'))

describe('protobuf wire format', () => {
  // Computed by hand from the encoding guide.
  const numbers: [keyof WireReader & keyof WireWriter, Int64 | boolean, string][] = [
    ['uint32', 0, '00'],
    ['uint32', 127, '7f'],
    ['uint32', 128, '8001'],
    ['uint32', 150, '9601'],
    ['uint32', 300, 'ac02'],
    ['uint32', 4_294_967_295, 'ffffffff0f'],
    ['int32', 1, '01'],
    ['int32', -1, 'ffffffffffffffffff01'],
    ['int32', -2_147_483_648, '80808080f8ffffffff01'],
    ['sint32', 0, '00'],
    ['sint32', -1, '01'],
    ['sint32', 1, '02'],
    ['sint32', 2_147_483_647, 'feffffff0f'],
    ['sint32', -2_147_483_648, 'ffffffff0f'],
    ['uint64', 4_294_967_296, '8080808010'],
    ['uint64', 9_007_199_254_740_991, 'ffffffffffffff0f'],
    ['uint64', 9_007_199_254_740_992n, '8080808080808010'],
    ['uint64', 18_446_744_073_709_551_615n, 'ffffffffffffffffff01'],
    ['int64', -1, 'ffffffffffffffffff01'],
    ['int64', -2, 'feffffffffffffffff01'],
    ['int64', -9_223_372_036_854_775_808n, '80808080808080808001'],
    ['int64', 9_223_372_036_854_775_807n, 'ffffffffffffffff7f'],
    ['sint64', -2_147_483_649, '8180808010'],
    ['sint64', -9_223_372_036_854_775_808n, 'ffffffffffffffffff01'],
    ['bool', true, '01'],
    ['fixed32', 1, '01000000'],
    ['sfixed32', -2, 'feffffff'],
    ['fixed64', 18_446_744_073_709_551_615n, 'ffffffffffffffff'],
    ['sfixed64', -2, 'feffffffffffffff'],
    ['float', 1, '0000803f'],
    ['double', 1, '000000000000f03f'],
  ]
  for (const [type, value, hex] of numbers) {
    it(`round-trips ${type} ${value}`, () => {
      assert.equal(
        write((w) => (w[type] as (value: unknown) => void)(value)),
        hex,
      )
      const r = reader(hex)
      assert.equal((r[type] as () => unknown)(), value)
      assert.ok(r.done)
    })
  }

  it('writes fields from last to first', () => {
    const hex = write((w) => {
      w.uint32(150)
      w.tag(1, 0)
      w.lengthSince(0)
      w.tag(3, 2)
      w.string('testing')
      w.tag(2, 2)
    })
    assert.equal(hex, '120774657374696e671a03089601')
  })

  it('round-trips any sequence of values while the buffer grows', () => {
    const value = fc.oneof(fc.bigInt({ min: -(2n ** 63n), max: 2n ** 63n - 1n }), fc.integer(), fc.maxSafeInteger())
    fc.assert(
      fc.property(
        fc.array(fc.tuple(value, fc.string({ unit: 'binary' }), fc.uint8Array({ maxLength: 3000 }))),
        (list) => {
          const writer = new WireWriter()
          for (const [number, text, bytes] of list.toReversed()) {
            writer.view(bytes)
            writer.string(text)
            writer.sint64(number)
            writer.sfixed64(number)
            writer.int64(number)
          }
          const r = new WireReader(writer.finish())
          for (const [number, text, bytes] of list) {
            for (const found of [r.int64(), r.sfixed64(), r.sint64()]) assert.equal(BigInt(found), BigInt(number))
            assert.equal(r.string(), text.toWellFormed())
            assert.deepEqual(r.view(), Buffer.from(bytes))
          }
          assert.ok(r.done)
        },
      ),
      { numRuns: 50 },
    )
  })

  it('rejects values out of range', () => {
    const w = new WireWriter()
    const wrong: (() => void)[] = [
      () => w.uint32(-1),
      () => w.uint32(1.5),
      () => w.uint32(2 ** 32),
      () => w.int32(2 ** 31),
      () => w.int32(Number.NaN),
      () => w.int64(2 ** 53),
      () => w.int64(2n ** 63n),
      () => w.uint64(-1),
      () => w.uint64(-1n),
      () => w.uint64(2n ** 64n),
      () => w.fixed32(-1),
      () => w.sfixed32(2 ** 31),
    ]
    for (const task of wrong) assert.throws(task, ProtobufError)
  })

  const refused: [string, string, (r: WireReader) => unknown][] = [
    ['a truncated varint', '8080', (r) => r.uint32()],
    ['a varint of 11 bytes', `${'80'.repeat(10)}01`, (r) => r.uint64()],
    ['a varint of more than 64 bits', `${'ff'.repeat(9)}02`, (r) => r.uint64()],
    ['field number 0', '00', (r) => r.tag()],
    ['a string longer than the remaining bytes', '0561', (r) => r.string()],
    ['a length of almost 4 GiB', 'ffffffff0f00', (r) => r.view()],
    ['a message longer than the remaining bytes', '0500', (r) => r.enter()],
    ['a truncated fixed-size number', '000000', (r) => r.fixed32()],
    ['an end of a group without a start', '', (r) => r.skip(12)],
    ['an unknown wire type', '', (r) => r.skip(15)],
    ['a group that ends with another field number', '14', (r) => r.skip(11)],
    ['a group without an end', '', (r) => r.skip(11)],
    ['deeply nested groups', '0b'.repeat(5000), (r) => r.skip(11)],
  ]
  for (const [what, hex, read] of refused) {
    it(`rejects ${what}`, () => assert.throws(() => read(reader(hex)), ProtobufError))
  }

  it('keeps reads of a nested message inside its bytes', () => {
    const r = reader('020801ff01')
    const outer = r.enter()
    assert.equal(r.tag(), 8)
    assert.equal(r.uint32(), 1)
    assert.throws(() => r.uint32(), ProtobufError)
    r.leave(outer)
    assert.equal(r.uint32(), 255)
  })

  it('skips fields of every type', () => {
    const r = reader('089601090000000000000000120141150000000013080114')
    const seen: number[] = []
    while (!r.done) {
      const tag = r.tag()
      seen.push(tag >>> 3)
      r.skip(tag)
    }
    assert.deepEqual(seen, [1, 1, 2, 2, 2])
  })
})
