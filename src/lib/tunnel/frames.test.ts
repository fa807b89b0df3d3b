import assert from 'node:assert/strict'
import { describe, it } from 'node:test'

import { createSeededRandom } from '../random.ts'
import {
  decodeAddress,
  decodeError,
  decodeFrame,
  decodeOpen,
  decodeReset,
  decodeSync,
  decodeWindow,
  encodeAddress,
  encodeError,
  encodeFrame,
  encodeOpen,
  encodeReset,
  encodeSync,
  encodeWindow,
  type Frame,
  FRAME_KINDS,
  FrameError,
} from './frames.ts'

const hex = (text: string): Buffer => Buffer.from(text.replaceAll(' ', ''), 'hex')

/** Written by hand: message id 5, deadline 15000 as remotedialer sends it. */
const FIXTURES: readonly (readonly [title: string, bytes: string, frame: Omit<Frame, 'body'>, body: string])[] = [
  ['data', '0a 06 02 b0ea01 6869', { stream: 3, kind: FRAME_KINDS.data }, '6869'],
  ['connect', '0a 06 04 b0ea01 7463702f613a31', { stream: 3, kind: FRAME_KINDS.connect }, '7463702f613a31'],
  ['error', '0a 06 06 454f46', { stream: 3, kind: FRAME_KINDS.error }, '454f46'],
  ['add client', '0a 00 08 632f31', { stream: 0, kind: FRAME_KINDS.addClient }, '632f31'],
  ['remove client', '0a 00 0a 632f31', { stream: 0, kind: FRAME_KINDS.removeClient }, '632f31'],
  ['pause', '0a 06 0c', { stream: 3, kind: FRAME_KINDS.pause }, ''],
  ['resume', '0a 06 0e', { stream: 3, kind: FRAME_KINDS.resume }, ''],
  [
    'sync connections',
    '0a 00 10 0300000000000000 0001000000000000',
    { stream: 0, kind: FRAME_KINDS.sync },
    '03000000000000000001000000000000',
  ],
]

describe('tunnel frames', () => {
  for (const [title, bytes, frame, body] of FIXTURES)
    it(`decode from remotedialer's kind "${title}"`, () => {
      assert.deepEqual(decodeFrame(hex(bytes)), { ...frame, body: hex(body) })
    })

  it('decode with message ids of 63 bits', () => {
    assert.deepEqual(decodeFrame(hex('feffffffffffffffff01 c801 0c')), {
      stream: 100,
      kind: FRAME_KINDS.pause,
      body: Buffer.alloc(0),
    })
  })

  it('encode to the bytes that remotedialer expects', () => {
    const encode = (id: number, kind: number, stream: number, body = ''): string =>
      encodeFrame(id, { stream, kind, body: Buffer.from(body) }).toString('hex')
    assert.equal(encode(5, FRAME_KINDS.data, 3, 'hi'), '0a0602006869')
    assert.equal(encode(5, FRAME_KINDS.connect, 3, 'tcp/a:1'), '0a0604007463702f613a31')
    assert.equal(encode(64, FRAME_KINDS.pause, 300), '8001d8040c')
    assert.equal(encode(2 ** 40, FRAME_KINDS.resume, 1), '808080808040020e')
  })

  it('round-trip with stream ids of any size', () => {
    for (const stream of [0, 1, 63, 64, 8191, 8192, 2 ** 31, 2 ** 32, Number.MAX_SAFE_INTEGER - 1]) {
      const frame = { stream, kind: FRAME_KINDS.data, body: Buffer.from('x') }
      assert.deepEqual(decodeFrame(encodeFrame(2 ** 50, frame)), frame)
    }
  })

  it('round-trip with the body of every kind', () => {
    const target = { protocol: 'tcp', address: '[::1]:80', priority: 'bulk' } as const
    assert.deepEqual(decodeOpen(encodeOpen(target)), target)
    assert.deepEqual(decodeAddress(encodeAddress(target)), { ...target, priority: 'interactive' })
    assert.deepEqual(decodeReset(encodeReset({ code: 3, text: 'grün' })), { code: 3, text: 'grün' })
    assert.deepEqual(decodeSync(encodeSync([1, 2 ** 40])), new Set([1, 2 ** 40]))
    assert.equal(decodeWindow(encodeWindow(16 << 20)), 16 << 20)
    assert.equal(decodeError(encodeError('x'.repeat(1000))), 'x'.repeat(100))
  })

  const MALFORMED: readonly (readonly [title: string, decode: () => unknown])[] = [
    ['an empty message', () => decodeFrame(hex(''))],
    ['a truncated head', () => decodeFrame(hex('0a 06'))],
    ['a truncated number', () => decodeFrame(hex('0a 86'))],
    ['an endless message id', () => decodeFrame(hex('ff'.repeat(100)))],
    ['an endless stream id', () => decodeFrame(hex(`0a ${'80'.repeat(100)}`))],
    ['a negative stream id', () => decodeFrame(hex('0a 05 02 00'))],
    ['too large a stream id', () => decodeFrame(hex('0a feffffffffffffffff01 02 00'))],
    ['a truncated list of ids', () => decodeSync(Buffer.alloc(9))],
    ['an endless list of ids', () => decodeSync(Buffer.alloc((1 << 20) + 8))],
    ['an address without protocol', () => decodeAddress(Buffer.from('x'))],
    ['an endless address', () => decodeAddress(Buffer.alloc(1 << 20, '/'))],
    ['an unknown priority', () => decodeOpen(hex('02 612f62'))],
    ['an empty reset', () => decodeReset(hex(''))],
    ['an endless window', () => decodeWindow(hex('ff'.repeat(20)))],
  ]
  for (const [title, decode] of MALFORMED) it(`are rejected with ${title}`, () => assert.throws(decode, FrameError))

  it('cause only FrameError if they are mutated at random', () => {
    const random = createSeededRandom(7)
    const decoders = [decodeAddress, decodeOpen, decodeSync, decodeWindow, decodeReset, decodeError]
    const attempt = (decode: () => unknown): void => {
      try {
        decode()
      } catch (error) {
        assert.ok(error instanceof FrameError, String(error))
      }
    }
    for (let round = 0; round < 100_000; round++) {
      const [, bytes = ''] = FIXTURES[random.int(FIXTURES.length)] ?? []
      let message: Buffer = hex(bytes)
      for (let left = random.int(4); left >= 0 && message.length > 0; left--) {
        const at = random.int(message.length)
        if (random.int(3) === 0) message = message.subarray(0, at)
        else message[at] = random.int(256)
      }
      attempt(() => decodeFrame(message))
      attempt(() => decoders[round % decoders.length]?.(message))
    }
  })
})
