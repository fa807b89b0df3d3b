import assert from 'node:assert/strict'
import { describe, it } from 'node:test'

import * as fc from 'fast-check'

import type { Message } from './message.ts'
import { defineMessage } from './message.ts'
import { ProtobufError } from './wire.ts'

const Inner = defineMessage({ a: [1, 'int32'] })

const Everything = defineMessage({
  text: [2, 'string'],
  number: [1, 'int64'],
  inner: [3, Inner],
  packed: [4, 'int32', 'repeated'],
  unpacked: [5, 'sint64', 'unpacked'],
  words: [6, 'string', 'repeated'],
  inners: [7, Inner, 'repeated'],
  labels: [8, { key: 'string', value: 'string' }],
  flag: [9, 'bool'],
  maybe: [10, 'uint32', 'optional'],
  data: [11, 'bytes'],
  ratio: [12, 'double'],
  byNumber: [13, { key: 'int32', value: Inner }],
  far: [1000, 'fixed64'],
})

interface Tree {
  name: string
  children: Tree[]
}
const Tree: Message<Tree> = defineMessage({ name: [1, 'string'], children: [2, (): Message<Tree> => Tree, 'repeated'] })

const hex = (bytes: Buffer): string => bytes.toString('hex')
const fromHex = (text: string): Buffer => Buffer.from(text, 'hex')

describe('protobuf message codec', () => {
  const vectors: [string, Parameters<typeof Everything.encode>[0], string][] = [
    ['an empty message', {}, ''],
    ['zeros as absent fields', { text: '', number: 0, flag: false, data: Buffer.alloc(0), packed: [], ratio: 0 }, ''],
    ['a number field', { number: 150 }, '089601'],
    ['a string field', { text: 'testing' }, '120774657374696e67'],
    ['fields in order of their numbers', { text: 'a', number: 1 }, '0801120161'],
    ['a nested message', { inner: { a: 150 } }, '1a03089601'],
    ['an empty message', { inner: {} }, '1a00'],
    ['packed numbers', { packed: [3, 270, 86_942] }, '2206038e029ea705'],
    ['unpacked numbers', { unpacked: [1, -1] }, '28022801'],
    ['repeated strings, including empty ones', { words: ['a', '', 'b'] }, '3201613200320162'],
    ['repeated messages', { inners: [{ a: 1 }, {}] }, '3a0208013a00'],
    ['a map', { labels: new Map([['k', 'v']]) }, '42060a016b120176'],
    ['a map with empty keys and values', { labels: new Map([['', '']]) }, '42040a001200'],
    ['an optional zero', { maybe: 0 }, '5000'],
    ['negative zero', { ratio: -0 }, '610000000000000080'],
    ['a map of messages', { byNumber: new Map([[1, { a: 2 }]]) }, '6a06080112020802'],
    ['a field with a large number', { far: 1 }, 'c13e0100000000000000'],
  ]
  for (const [what, value, expected] of vectors) {
    it(`encodes ${what}`, () => {
      const bytes = Everything.encode(value)
      assert.equal(hex(bytes), expected)
      assert.equal(hex(Everything.encode(Everything.decode(bytes))), expected)
    })
  }

  it('fills absent fields with new zero values each time', () => {
    const empty = Buffer.alloc(0)
    assert.deepEqual(Everything.decode(empty), {
      text: '',
      number: 0,
      inner: undefined,
      packed: [],
      unpacked: [],
      words: [],
      inners: [],
      labels: new Map(),
      flag: false,
      maybe: undefined,
      data: empty,
      ratio: 0,
      byNumber: new Map(),
      far: 0,
    })
    const first = Everything.decode(empty)
    first.packed.push(1)
    first.labels.set('a', 'b')
    assert.deepEqual(Everything.decode(Buffer.alloc(0)).packed, [])
    assert.equal(Everything.decode(Buffer.alloc(0)).labels.size, 0)
  })

  it('accepts packed and unpacked numbers, merges messages, and takes the last of repeated scalars and map keys', () => {
    assert.deepEqual(Everything.decode(fromHex('20032206038e029ea705')).packed, [3, 3, 270, 86_942])
    assert.deepEqual(Everything.decode(fromHex('2a020201')).unpacked, [1, -1])
    const Pair = defineMessage({ a: [1, 'int32'], b: [2, 'int32'] })
    const Outer = defineMessage({ pair: [1, Pair] })
    assert.deepEqual(Outer.decode(fromHex('0a0208010a021002')).pair, { a: 1, b: 2 })
    assert.equal(Pair.decode(fromHex('08010802')).a, 2)
    assert.deepEqual([...Everything.decode(fromHex('42060a016b12017642060a016b120177')).labels], [['k', 'w']])
    assert.deepEqual([...Everything.decode(fromHex('6a020801')).byNumber], [[1, { a: 0 }]])
  })

  it('skips unknown fields and fields of another wire type', () => {
    assert.equal(Inner.decode(fromHex('1a0161080a0a0141a00605')).a, 10)
  })

  it('treats __proto__ like other map keys', () => {
    const labels = new Map([['__proto__', 'x']])
    assert.deepEqual(Everything.decode(Everything.encode({ labels })).labels, labels)
  })

  it('supports recursive messages up to a maximum depth', () => {
    const tree = { name: 'a', children: [{ name: 'b', children: [{ name: 'c', children: [] }] }] }
    assert.deepEqual(Tree.decode(Tree.encode(tree)), tree)
    let deep: Tree = { name: '', children: [] }
    for (let level = 0; level < 99; level++) deep = { name: '', children: [deep] }
    assert.ok(Tree.decode(Tree.encode(deep)))
    deep = { name: '', children: [{ name: '', children: [deep] }] }
    assert.throws(() => Tree.decode(Tree.encode(deep)), /nested deeper/)
  })

  it('works again after a value that it rejected', () => {
    assert.throws(() => Everything.encode({ text: 'left behind', packed: [1.5] }), ProtobufError)
    assert.equal(hex(Everything.encode({ number: 150 })), '089601')
  })

  it('rejects invalid message tables', () => {
    assert.throws(() => defineMessage({ a: [1, 'int32'], b: [1, 'int32'] }), /same number/)
    assert.throws(() => defineMessage({ a: [0, 'int32'] }), /number 0/)
  })

  it('round-trips any message', () => {
    const int64 = fc.bigInt({ min: -(2n ** 63n), max: 2n ** 63n - 1n })
    const narrow = (value: bigint): number | bigint => (Number.isSafeInteger(Number(value)) ? Number(value) : value)
    const text = fc.string({ unit: 'grapheme' })
    const plain = { noNullPrototype: true } as const
    const inner = fc.record({ a: fc.integer() }, plain)
    const value = fc.record(
      {
        text,
        number: int64.map(narrow),
        inner: fc.option(inner, { nil: undefined }),
        packed: fc.array(fc.integer()),
        unpacked: fc.array(int64.map(narrow)),
        words: fc.array(text),
        inners: fc.array(inner),
        labels: fc.array(fc.tuple(text, text)).map((entries) => new Map(entries)),
        flag: fc.boolean(),
        maybe: fc.option(fc.nat(), { nil: undefined }),
        data: fc.uint8Array().map((bytes) => Buffer.from(bytes)),
        ratio: fc.double(),
        byNumber: fc.array(fc.tuple(fc.integer(), inner)).map((entries) => new Map(entries)),
        far: fc.nat(),
      },
      plain,
    )
    fc.assert(fc.property(value, (one) => assert.deepEqual(Everything.decode(Everything.encode(one)), one)))
  })

  it('throws only ProtobufError and reads only its bytes for any input', () => {
    const sample = Everything.encode({
      text: 'some text',
      number: 2n ** 60n,
      inner: { a: -1 },
      packed: [1, 2, 3],
      words: ['a', 'b'],
      labels: new Map([['k', 'v']]),
      data: Buffer.from('xyz'),
      inners: [{ a: 1 }, { a: 2 }],
    })
    const mutated = fc.array(fc.tuple(fc.nat({ max: sample.length - 1 }), fc.nat({ max: 255 })), { maxLength: 6 })
    fc.assert(
      fc.property(mutated, fc.nat({ max: sample.length }), fc.uint8Array(), (changes, length, noise) => {
        const bytes = Buffer.concat([sample.subarray(0, length), noise])
        for (const [at, value] of changes) if (at < bytes.length) bytes[at] = value
        for (const type of [Everything, Tree]) {
          try {
            type.decode(bytes)
          } catch (error) {
            assert.ok(error instanceof ProtobufError, String(error))
          }
        }
      }),
      { numRuns: 3000 },
    )
  })
})
