import assert from 'node:assert/strict'
import { duplexPair } from 'node:stream'
import { describe, it } from 'node:test'
import { deflateSync, constants, createDeflate } from 'node:zlib'

import fc from 'fast-check'

import { createVirtualClock } from '../clock.ts'
import { SpdyConnection, type SpdyOptions } from './connection.ts'
import { DICTIONARY_ID, HEADER_DICTIONARY } from './dictionary.ts'
import { controlFrame, dataHead, FrameParser, GOAWAY, PING, RST_STREAM, SYN_STREAM, words } from './frames.ts'
import { HeaderReader, HeaderWriter } from './header-block.ts'
import { SpdyError, SpdyStream } from './stream.ts'

const clock = createVirtualClock()

describe('SPDY header blocks', () => {
  it('use the dictionary with the checksum of the protocol', () => {
    // A compressor that is given a dictionary writes its checksum behind two bytes.
    assert.equal(deflateSync('', { dictionary: HEADER_DICTIONARY }).readUInt32BE(2), DICTIONARY_ID)
    assert.equal(HEADER_DICTIONARY.length, 1423)
  })

  it('round-trip in sequence in one compression stream', async () => {
    const name = fc.stringMatching(/^[a-z-]{1,20}$/)
    const value = fc.string({ unit: 'grapheme', maxLength: 300 }).map((text) => text.replaceAll('\0', ''))
    const blocks = fc.array(fc.uniqueArray(fc.tuple(name, value), { selector: ([key]) => key, maxLength: 5 }))
    await fc.assert(
      fc.asyncProperty(blocks, async (all) => {
        const [writer, reader] = [new HeaderWriter(), new HeaderReader()]
        for (const headers of all) assert.deepEqual([...(await reader.read(writer.write(headers)))], headers)
        reader.close()
      }),
      { numRuns: 30 },
    )
  })

  it('are decoded if the peer compresses them together with earlier ones', async () => {
    const packer = createDeflate({ dictionary: HEADER_DICTIONARY, flush: constants.Z_SYNC_FLUSH })
    const pack = async (plain: Buffer): Promise<Buffer> => {
      const pieces: Buffer[] = []
      const take = (piece: Buffer): number => pieces.push(piece)
      packer.on('data', take)
      await new Promise<void>((done) => packer.write(plain, () => setImmediate(done)))
      packer.off('data', take)
      return Buffer.concat(pieces)
    }
    const text = (value: string): Buffer => Buffer.concat([words(value.length), Buffer.from(value)])
    const plain = Buffer.concat([words(1), text('streamtype'), text('error')])
    const [first, second] = [await pack(plain), await pack(plain)]
    assert.ok(second.length < first.length, 'the second leans on the first')
    const reader = new HeaderReader()
    assert.equal((await reader.read(first)).get('streamtype'), 'error')
    assert.equal((await reader.read(second)).get('streamtype'), 'error')
  })

  it('are rejected if they are invalid, too many or too large unpacked', async () => {
    const read = (block: Buffer): Promise<unknown> => new HeaderReader().read(block)
    const packed = (plain: Buffer): Buffer => deflateSync(plain, { dictionary: HEADER_DICTIONARY })
    await assert.rejects(read(Buffer.from('no zlib at all')), /Broken header block/)
    await assert.rejects(read(packed(words(1, 5))), /too short/)
    await assert.rejects(read(packed(words(1_000_000))), /More than 100 headers/)
    await assert.rejects(read(packed(Buffer.alloc(1 << 20))), /Broken header block/)
  })
})

describe('SPDY frames', () => {
  it('are parsed for any split of their bytes', () => {
    const frames = Buffer.concat([
      controlFrame(PING, 0, words(7)),
      dataHead(3, 5, 1),
      Buffer.from('hello'),
      controlFrame(GOAWAY, 0, words(0, 0)),
    ])
    fc.assert(
      fc.property(fc.array(fc.nat(frames.length), { maxLength: 12 }), (cuts) => {
        const parser = new FrameParser()
        const edges = [0, ...cuts.toSorted((a, b) => a - b), frames.length]
        const found = edges.slice(1).flatMap((end, at) => parser.push(frames.subarray(edges[at], end)))
        assert.deepEqual(
          found.map((frame) => (frame.type === 'data' ? `${frame.streamId}:${frame.data.toString()}` : frame.kind)),
          [PING, '3:hello', GOAWAY],
        )
      }),
    )
  })

  it('are rejected if they have another version or are too large', () => {
    assert.throws(() => new FrameParser().push(Buffer.from('GET / HTTP/1.1\r\n\r\n', 'latin1').fill(0xff, 0, 1)))
    const huge = controlFrame(SYN_STREAM, 0, words(1))
    huge.writeUInt32BE(1 << 23, 4)
    assert.throws(() => new FrameParser().push(huge), /too large/)
  })
})

const TYPE = new Map([['streamtype', 'stdout']])

interface Pair {
  readonly client: SpdyConnection
  readonly server: SpdyConnection
  /** The next stream the client opens. */
  readonly accepted: Promise<SpdyStream>
}

function pair(options: Partial<SpdyOptions> = {}): Pair {
  const [one, other] = duplexPair()
  const { promise, resolve } = Promise.withResolvers<SpdyStream>()
  const server = new SpdyConnection(other, { clock, role: 'server', onStream: resolve })
  return { client: new SpdyConnection(one, { clock, role: 'client', ...options }), server, accepted: promise }
}

async function textOf(stream: SpdyStream): Promise<string> {
  const pieces: Buffer[] = []
  for await (const piece of stream) pieces.push(piece)
  return Buffer.concat(pieces).toString()
}

describe('SPDY connection', () => {
  it('transfers data in both directions of a stream, which end independently', async () => {
    const { client, accepted } = pair()
    const near = await client.open(TYPE)
    const far = await accepted
    assert.equal(far.headers.get('streamtype'), 'stdout')
    await near.write(Buffer.from('question'))
    near.end()
    assert.equal(await textOf(far), 'question')
    await far.write(Buffer.from('answer'))
    far.end()
    assert.equal(await textOf(near), 'answer')
  })

  it('transfers many complete streams concurrently', async () => {
    const [one, other] = duplexPair()
    const echo = new SpdyConnection(other, {
      clock,
      role: 'server',
      onStream: (stream) =>
        void (async () => {
          for await (const piece of stream) await stream.write(piece)
          stream.end()
        })(),
    })
    const many = new SpdyConnection(one, { clock, role: 'client' })
    const sizes = [0, 1, 70_000, 1_000_000]
    const back = await Promise.all(
      sizes.map(async (size) => {
        const stream = await many.open(TYPE)
        void stream.write(Buffer.alloc(size, 'x')).then(() => stream.end())
        return (await textOf(stream)).length
      }),
    )
    assert.deepEqual(back, sizes)
    many.close()
    await Promise.all([many.closed, echo.closed])
  })

  it('stops reading while its data is not consumed, and continues afterwards', async () => {
    const { client, accepted } = pair()
    const near = await client.open(TYPE)
    const far = await accepted
    let written = 0
    const writing = (async () => {
      for (; written < 50; written++) await far.write(Buffer.alloc(100_000))
      far.end()
    })()
    for (let turn = 0; turn < 20; turn++) await new Promise((resolve) => setImmediate(resolve))
    assert.ok(written < 40, `${written} pieces were sent without a reader`)
    let received = 0
    for await (const piece of near) received += piece.length
    await writing
    assert.equal(received, 5_000_000)
  })

  it('ends a stream that was reset, and keeps the others', async () => {
    const { client, accepted } = pair()
    const near = await client.open(TYPE)
    const far = await accepted
    await far.write(Buffer.from('so far'))
    far.reset()
    assert.equal(await textOf(near), 'so far')
    assert.ok((await client.open(TYPE)) !== undefined)
  })

  it('ends streams without an error after GOAWAY, and with an error otherwise', async () => {
    const polite = pair()
    const near = await polite.client.open(TYPE)
    polite.server.close()
    assert.equal(await textOf(near), '')
    await polite.client.closed
    await assert.rejects(polite.client.open(TYPE), SpdyError)

    const rude = pair()
    const left = await rude.client.open(TYPE)
    rude.server.destroy()
    rude.client.destroy()
    await assert.rejects(textOf(left), { code: 'broken' })
    await assert.rejects(left.write(Buffer.from('x')), SpdyError)
  })

  it('reports refused and unanswered streams', async () => {
    const [one, other] = duplexPair()
    const own = createVirtualClock()
    const client = new SpdyConnection(one, { clock: own, role: 'client' })
    other.resume()
    const opening = client.open(TYPE)
    const refused = assert.rejects(opening, { code: 'refused' })
    other.write(controlFrame(RST_STREAM, 0, words(1, 3)))
    await refused
    const silent = assert.rejects(client.open(TYPE), { code: 'timeout' })
    await own.advance(31_000)
    await silent
  })

  it('refuses streams of a peer that may not open any, and answers its pings', async () => {
    const [one, other] = duplexPair()
    const client = new SpdyConnection(one, { clock, role: 'client' })
    const parser = new FrameParser()
    const block = new HeaderWriter().write(TYPE)
    other.write(controlFrame(SYN_STREAM, 0, Buffer.concat([words(2, 0), Buffer.alloc(2), block])))
    other.write(controlFrame(PING, 0, words(2)))
    const kinds: number[] = []
    for await (const bytes of other) {
      for (const frame of parser.push(bytes as Buffer)) if (frame.type === 'control') kinds.push(frame.kind)
      if (kinds.length === 2) break
    }
    assert.deepEqual(kinds, [RST_STREAM, PING])
    client.destroy()
  })

  it('answers a limited number of pings of a peer that does not read', async () => {
    const [hostile, ours] = duplexPair()
    const connection = new SpdyConnection(ours, { clock, role: 'server' })
    // Twice as many as may wait, in one breath.
    hostile.write(Buffer.concat(Array.from({ length: 20_000 }, () => controlFrame(PING, 0, words(1)))))
    await connection.closed
    assert.ok(ours.writableLength < 1 << 20, `${ours.writableLength} bytes waited`)
  })

  it('accepts a limited number of streams from a peer', async () => {
    const [hostile, ours] = duplexPair()
    const parser = new FrameParser()
    let refused = 0
    hostile.on('data', (bytes: Buffer) => {
      for (const frame of parser.push(bytes)) if (frame.type === 'control' && frame.kind === RST_STREAM) refused++
    })
    let taken = 0
    const connection = new SpdyConnection(ours, { clock, role: 'server', onStream: () => taken++ })
    const writer = new HeaderWriter()
    for (let id = 1; id < 2 * 4100; id += 2) {
      hostile.write(controlFrame(SYN_STREAM, 0, Buffer.concat([words(id, 0), Buffer.alloc(2), writer.write([])])))
    }
    hostile.end()
    await connection.closed
    assert.deepEqual([taken, refused], [4096, 4])
  })

  it('stops reading if many small frames are queued', async () => {
    const stream = new SpdyStream(1, TYPE, { send: () => Promise.resolve(), reset: () => undefined })
    let came = 0
    void (async () => {
      for (; came < 20_000; came++) await stream.received(Buffer.alloc(1))
    })()
    await new Promise((resolve) => setImmediate(resolve))
    assert.ok(came < 5000, `${came} pieces wait`)
    let read = 0
    for await (const piece of stream) if ((read += piece.length) === 20_000) break
    assert.equal(came, 20_000)
  })

  it('pings an idle peer at the configured interval', async () => {
    const own = createVirtualClock()
    const [one, other] = duplexPair()
    const client = new SpdyConnection(one, { clock: own, role: 'client', pingIntervalMs: 5000 })
    const parser = new FrameParser()
    let pings = 0
    other.on('data', (bytes: Buffer) => (pings += parser.push(bytes).length))
    await own.advance(15_000)
    assert.equal(pings, 3)
    client.destroy()
    await client.closed
    assert.equal(own.pending, 0)
  })

  it('closes if the peer does not speak SPDY', async () => {
    const [one, other] = duplexPair()
    const client = new SpdyConnection(one, { clock, role: 'client' })
    other.write(Buffer.from([0x80, 0x09, 0, 1, 0, 0, 0, 0]))
    await client.closed
  })
})
