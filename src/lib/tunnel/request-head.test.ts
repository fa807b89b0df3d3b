import assert from 'node:assert/strict'
import { PassThrough } from 'node:stream'
import { describe, it } from 'node:test'

import { announcedLength, decodeRequest, decodeResponse, encodeHead, HeadError, readHead } from './request-head.ts'

const REQUEST = { method: 'GET', path: '/api?a=b', headers: ['accept', '*/*'], follows: 'end' } as const

describe('heads of requests in a tunnel', () => {
  it('arrive unchanged, whatever the pieces are', async () => {
    const bytes = Buffer.concat([encodeHead(REQUEST), Buffer.from('the body')])
    for (const size of [1, 3, 7, bytes.length]) {
      const stream = new PassThrough()
      for (let at = 0; at < bytes.length; at += size) stream.write(bytes.subarray(at, at + size))
      stream.end()
      assert.deepEqual(decodeRequest(await readHead(stream)), REQUEST)
      const rest: Buffer[] = []
      for await (const piece of stream) rest.push(piece as Buffer)
      assert.equal(Buffer.concat(rest).toString(), 'the body', `${size}`)
    }
  })

  it('are refused if they are too large, without reading them', async () => {
    const stream = new PassThrough()
    stream.write(Buffer.from([0x7f, 0xff, 0xff, 0xff]))
    await assert.rejects(readHead(stream), /A head has 2147483647 bytes/)
    const large = { ...REQUEST, headers: ['a', 'x'.repeat(200_000)] }
    assert.throws(() => encodeHead(large), HeadError)
  })

  it('are refused if the stream ends before', async () => {
    for (const bytes of [Buffer.alloc(0), Buffer.from([0, 0]), encodeHead(REQUEST).subarray(0, -1)]) {
      const stream = new PassThrough()
      stream.end(bytes)
      await assert.rejects(readHead(stream), /before the head was complete/)
    }
    const broken = new PassThrough()
    broken.on('error', () => undefined)
    broken.destroy(new Error('lost'))
    await assert.rejects(readHead(broken), /lost/)
  })

  const BAD_REQUESTS: readonly unknown[] = [
    null,
    [],
    'GET / HTTP/1.1',
    { ...REQUEST, method: '' },
    { ...REQUEST, method: 'GET /x' },
    { ...REQUEST, method: 7 },
    { ...REQUEST, path: '' },
    { ...REQUEST, path: '/a b' },
    { ...REQUEST, path: '/a\r\nx: y' },
    { ...REQUEST, path: '/\u0100' },
    { ...REQUEST, follows: 'anything' },
    { ...REQUEST, follows: undefined },
    { ...REQUEST, headers: undefined },
    { ...REQUEST, headers: { a: 'b' } },
    { ...REQUEST, headers: ['a'] },
    { ...REQUEST, headers: ['a', 1] },
    { ...REQUEST, headers: ['', 'b'] },
    { ...REQUEST, headers: ['A', 'b'] },
    { ...REQUEST, headers: ['a b', 'c'] },
    { ...REQUEST, headers: ['a:', 'c'] },
    { ...REQUEST, headers: ['a', 'b\r\nc: d'] },
    { ...REQUEST, headers: ['a', 'b\u0000'] },
    { ...REQUEST, headers: ['a', '\u2028'] },
  ]
  for (const bad of BAD_REQUESTS)
    it(`are refused as requests: ${JSON.stringify(bad)}`, () =>
      assert.throws(() => decodeRequest(JSON.stringify(bad)), HeadError))

  const BAD_RESPONSES: readonly unknown[] = [
    {},
    { status: '200', headers: [] },
    { status: 100, headers: [] },
    { status: 103, headers: [] },
    { status: 1000, headers: [] },
    { status: 200.5, headers: [] },
    { status: 200, headers: ['set-cookie', 'a\nb'] },
  ]
  for (const bad of BAD_RESPONSES)
    it(`are refused as responses: ${JSON.stringify(bad)}`, () =>
      assert.throws(() => decodeResponse(JSON.stringify(bad)), HeadError))

  it('are refused if they are no JSON', () => {
    for (const text of ['', '{', 'HTTP/1.1 200 OK']) assert.throws(() => decodeResponse(text), HeadError)
  })

  it('announce one length, or none', () => {
    assert.deepEqual([announcedLength(undefined), announcedLength('0'), announcedLength('12')], [undefined, 0, 12])
    for (const text of ['', '-1', '1, 1', '0x10', '1e3', ' 1', '9'.repeat(30)])
      assert.throws(() => announcedLength(text), HeadError, text)
  })
})
