import assert from 'node:assert/strict'
import { describe, test } from 'node:test'

import { createSeededRandom } from '#lib/random.ts'

import { isName, nameBytes, type Query, readMessage, readName, readQuery, RCODE, TYPE } from './wire.ts'

/** A header and the following bytes. */
export function packet(header: readonly number[], ...rest: readonly (Uint8Array | readonly number[])[]): Uint8Array {
  const words = header.flatMap((word) => [word >> 8, word & 0xff])
  return Uint8Array.from([...words, ...rest.flatMap((part) => [...part])])
}

const OPT = [0, 0, TYPE.OPT, 0x10, 0, 0, 0, 0x80, 0, 0, 0]
const IN_A = [0, TYPE.A, 0, 1]

describe('DNS names on the wire', () => {
  test('become lower-case text with escapes, and convert back to bytes', () => {
    const bytes = Uint8Array.from([3, 0x41, 0x2e, 0x62, 1, 0x5c, 2, 0x00, 0xff, 0])
    assert.deepEqual(readName(bytes, 0), { name: String.raw`a\046b.\092.\000\255`, end: 10 })
    assert.deepEqual(
      nameBytes(String.raw`a\046b.\092.\000\255`),
      Uint8Array.from([3, 0x61, 0x2e, 0x62, 1, 0x5c, 2, 0x00, 0xff, 0]),
    )
    assert.deepEqual(readName(Uint8Array.of(0), 0), { name: '', end: 1 })
  })

  test('may contain pointers to earlier offsets, but no forward pointers or cycles', () => {
    const back = Uint8Array.from([1, 0x61, 0, 1, 0x62, 0xc0, 0])
    assert.deepEqual(readName(back, 3), { name: 'b.a', end: 7 })
    for (const broken of [
      [0xc0, 0],
      [0xc0, 2, 0xc0, 0],
      [1, 0x61, 0xc0, 0],
      [0xc0],
      [5, 0x61],
      [0x40, 0x61, 0],
      [1, 0x61],
    ])
      assert.equal(readName(Uint8Array.from(broken), 0), undefined, String(broken))
    assert.equal(readName(Uint8Array.from([0, 0xc0, 2, 0xc0, 1]), 3), undefined)
    assert.equal(readName(back, 3, false), undefined)
  })

  test('have at most 255 bytes', () => {
    const label = [50, ...Array.from({ length: 50 }, () => 0x61)]
    const of = (many: number): Uint8Array => Uint8Array.from([...Array.from({ length: many }, () => label).flat(), 0])
    assert.ok(readName(of(4), 0))
    assert.equal(readName(of(5), 0), undefined)
    assert.equal(isName(`${'a'.repeat(64)}.b`), false)
    assert.equal(isName('a..b'), false)
    assert.equal(isName('a.b'), true)
  })
})

describe('DNS queries on the wire', () => {
  const question = [...nameBytes('Web.Shop'), ...IN_A]
  const parse = (header: readonly number[], ...rest: readonly (readonly number[])[]): unknown =>
    readQuery(packet(header, ...rest))

  test('may contain EDNS options', () => {
    const query = parse([7, 0x01_00, 1, 0, 0, 1], question, OPT) as Query
    const { id, name, type, edns } = query
    assert.deepEqual([id, name, type], [7, 'web.shop', TYPE.A])
    assert.deepEqual(edns, { size: 4096, version: 0, dnssecOk: true })
    assert.deepEqual([...query.question], question)
  })

  test('are rejected if they are invalid, and ignored if they are responses', () => {
    const refusals: readonly (readonly [unknown, number | undefined])[] = [
      [parse([7, 0x80_00, 1, 0, 0, 0], question), undefined],
      [readQuery(new Uint8Array(11)), undefined],
      [parse([7, 0x28_00, 1, 0, 0, 0], question), RCODE.notImplemented],
      [parse([7, 0, 2, 0, 0, 0], question, question), RCODE.formatError],
      [parse([7, 0, 0, 0, 0, 0]), RCODE.formatError],
      [parse([7, 0, 1, 0, 0, 65_535], question), RCODE.formatError],
      [parse([7, 0, 1, 1, 0, 0], question), RCODE.formatError],
      [parse([7, 0, 1, 0, 0, 2], question, OPT, OPT), RCODE.formatError],
      [parse([7, 0, 1, 0, 0, 1], question), RCODE.formatError],
      [parse([7, 0, 1, 0, 0, 0], [0xc0, 12, ...IN_A]), RCODE.formatError],
    ]
    for (const [got, refusal] of refusals) assert.equal((got as { refusal: unknown }).refusal, refusal)
  })
})

test('the parser of DNS messages throws only DNS errors for any bytes', () => {
  const random = createSeededRandom(14)
  for (let nth = 0; nth < 20_000; nth++) {
    const bytes = random.bytes(random.int(80))
    if (random.int(2) === 0 && bytes.length > 12)
      bytes.set([0, 0, 1, 0, 0, 1, 0, random.int(3), 0, random.int(3), 0, random.int(3)], 0)
    readQuery(bytes)
    readMessage(bytes)
  }
})

test('a DNS message lists its records, and is invalid if it contains fewer than it counts', () => {
  const answer = [0xc0, 12, ...IN_A, 0, 0, 1, 0x2c, 0, 4, 10, 0, 0, 1]
  const message = readMessage(packet([7, 0x80_00, 1, 1, 0, 1], [...nameBytes('a.b'), ...IN_A], answer, OPT))
  assert.deepEqual(
    message?.answers.map(({ name, type, ttl }) => [name, type, ttl]),
    [['a.b', TYPE.A, 300]],
  )
  assert.equal(message?.additional.length, 1)
  assert.equal(readMessage(packet([7, 0x80_00, 1, 65_535, 0, 0], [...nameBytes('a.b'), ...IN_A], answer)), undefined)
})
