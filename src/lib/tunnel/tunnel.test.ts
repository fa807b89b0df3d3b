import assert from 'node:assert/strict'
import { once } from 'node:events'
import type { Duplex } from 'node:stream'
import { text } from 'node:stream/consumers'
import { describe, it } from 'node:test'

import { SimulatedWebSocket } from '#kits/lib/simulated-websocket.ts'

import { createVirtualClock, type VirtualClock } from '../clock.ts'
import { WebSocketError } from '../http/websocket.ts'
import { createSeededRandom } from '../random.ts'
import { MAX_WINDOW_BYTES } from './credit-stream.ts'
import {
  decodeFrame,
  decodeReset,
  encodeAddress,
  encodeFrame,
  encodeOpen,
  encodeSync,
  encodeWindow,
  type Frame,
  FRAME_KINDS,
  FrameError,
  RESET_CODES,
} from './frames.ts'
import { TunnelError } from './tunnel-error.ts'
import { type Accept, Tunnel, TUNNEL_PROTOCOL, type TunnelOptions } from './tunnel.ts'

type Version = 1 | 2

const KIB = 1 << 10
const MIB = 1 << 20
const protocolOf = (version: Version): string => (version === 2 ? TUNNEL_PROTOCOL : '')

async function turns(count = 50): Promise<void> {
  for (let turn = 0; turn < count; turn++) await new Promise((resolve) => setImmediate(resolve))
}

interface Pair {
  readonly clock: VirtualClock
  readonly server: Tunnel
  readonly agent: Tunnel
  readonly sockets: readonly [SimulatedWebSocket, SimulatedWebSocket]
  /** The streams that the agent serves. */
  readonly served: Duplex[]
  readonly ends: Promise<readonly PromiseSettledResult<void>[]>
}

interface PairOptions {
  readonly delayMs?: number
  readonly accept?: Accept
  readonly server?: Partial<TunnelOptions>
  readonly agent?: Partial<TunnelOptions>
}

function pair(version: Version, { delayMs = 0, accept, server, agent }: PairOptions = {}): Pair {
  const clock = createVirtualClock()
  const sockets = SimulatedWebSocket.pair({ clock, delayMs, protocol: protocolOf(version) })
  const served: Duplex[] = []
  const own = new Tunnel(sockets[0], { clock, ...server })
  const other = new Tunnel(sockets[1], {
    clock,
    side: 'agent',
    accept: accept ?? (() => (stream) => void served.push(stream)),
    ...agent,
  })
  return { clock, server: own, agent: other, sockets, served, ends: Promise.allSettled([own.serve(), other.serve()]) }
}

/** A peer that sends any frames, and what it receives. */
function strange(version: Version, options: Partial<TunnelOptions> = {}) {
  const clock = createVirtualClock()
  const [socket, peer] = SimulatedWebSocket.pair({ clock, protocol: protocolOf(version) })
  const tunnel = new Tunnel(socket, { clock, ...options })
  const received: Frame[] = []
  void (async () => {
    for await (const { data } of peer) received.push(decodeFrame(data))
  })().catch(() => undefined)
  const send = (stream: number, kind: number, body: Buffer | string = ''): void =>
    void peer.send(encodeFrame(1, { stream, kind, body: Buffer.from(body) })).catch(() => undefined)
  const ended = tunnel.serve()
  ended.catch(() => undefined)
  const of = (kind: number): Frame[] => received.filter((frame) => frame.kind === kind)
  return { clock, tunnel, peer, send, ended, received, of }
}

const errorOf = (stream: Duplex): Promise<unknown> =>
  new Promise((resolve) => {
    stream.on('error', resolve)
  })

function keepWriting(stream: Duplex): void {
  const more = (error?: Error | null): void => {
    if (!error) stream.write(Buffer.alloc(256 * KIB), more)
  }
  more()
  more()
}

const open = encodeOpen({ protocol: 'tcp', address: 'a:1', priority: 'interactive' })
const connect = encodeAddress({ protocol: 'tcp', address: 'a:1' })

for (const version of [1, 2] as const)
  describe(`tunnel of version ${version}`, () => {
    it('carries streams in both directions', async () => {
      const echo: Accept = () => (stream) => void stream.pipe(stream)
      const { server, agent } = pair(version, { accept: echo, server: { accept: echo } })
      assert.equal(server.protocolVersion, version)
      for (const tunnel of [server, agent, server]) {
        const stream = tunnel.dial('tcp', 'a:1')
        stream.write('hello')
        assert.equal(String((await once(stream, 'data'))[0]), 'hello')
        stream.destroy()
      }
      await turns()
      assert.deepEqual([server.streams, agent.streams], [0, 0])
    })

    it('transfers protocol, address and bytes unchanged', async () => {
      const random = createSeededRandom(3)
      const wanted: string[] = []
      const got: Buffer[] = []
      const { server } = pair(version, {
        accept: (protocol, address) => (stream) => {
          wanted.push(`${protocol} ${address}`)
          stream.on('data', (bytes: Buffer) => got.push(bytes))
        },
      })
      const stream = server.dial('tcp', '[::1]:10250')
      const sent = Array.from({ length: 300 }, () => random.bytes(random.int(10_000)))
      for (const piece of sent) stream.write(piece)
      await turns(500)
      assert.deepEqual(wanted, ['tcp [::1]:10250'])
      assert.ok(Buffer.concat(got).equals(Buffer.concat(sent)))
    })

    it('refuses a stream to an address that is not served', async () => {
      const { server, agent } = pair(version, { accept: () => undefined })
      const error = await errorOf(server.dial('tcp', 'a:1').resume())
      assert.ok(error instanceof TunnelError)
      assert.equal(error.message, 'connecting to tcp/a:1 is not allowed')
      assert.equal(error.code, version === 2 ? 'refused' : 'reset')
      assert.deepEqual([server.streams, agent.streams], [0, 0])
    })

    it('reports the error of a handler on its stream only', async () => {
      const { server, served } = pair(version, {
        accept: (_, address) => (stream) => {
          if (address === 'bad:1') throw new Error('the handler failed')
          served.push(stream)
        },
      })
      const good = server.dial('tcp', 'good:1')
      const error = await errorOf(server.dial('tcp', 'bad:1').resume())
      assert.equal((error as Error).message, 'the handler failed')
      assert.equal(good.destroyed, false)
    })

    it('sends the error of a stream to its peer', async () => {
      const { server, served } = pair(version)
      const stream = server.dial('tcp', 'a:1')
      await turns()
      const error = errorOf(served[0]!.resume())
      stream.destroy(new Error('enough'))
      assert.equal(((await error) as Error).message, 'enough')
    })

    it('stops only the stream whose reader is slow', async () => {
      const { server, served } = pair(version)
      const [slow, fast] = [server.dial('tcp', 'a:1'), server.dial('tcp', 'a:2')]
      await turns()
      let got = 0
      served[1]!.on('data', (bytes: Buffer) => (got += bytes.length))
      for (let round = 0; round < 200; round++) {
        if (!slow.writableNeedDrain) slow.write(Buffer.alloc(64 * KIB))
        fast.write(Buffer.alloc(64 * KIB))
        await turns(10)
      }
      assert.equal(got, 200 * 64 * KIB)
      assert.ok(slow.writableNeedDrain)
      assert.ok(served[0]!.readableLength < MIB)
    })

    it('loses no bytes in flight when a reader pauses on a slow network', async () => {
      const { clock, server, served, ends, sockets } = pair(version, { delayMs: 100 })
      const stream = server.dial('tcp', 'a:1')
      await clock.advance(300)
      const total = 24 * MIB
      let written = 0
      const writeMore = (): void => {
        for (let hasRoom = true; hasRoom && written < total; written += 64 * KIB)
          hasRoom = stream.write(Buffer.alloc(64 * KIB))
      }
      stream.on('drain', writeMore)
      writeMore()
      let got = 0
      const random = createSeededRandom(5)
      served[0]!.on('data', (bytes: Buffer) => (got += bytes.length))
      for (let round = 0; round < 200; round++) {
        if (random.int(4) === 0) served[0]!.pause()
        else served[0]!.resume()
        await clock.advance(random.int(300))
      }
      served[0]!.resume()
      await clock.advance(20_000)
      assert.ok(got >= total, `${got} bytes`)
      sockets[0].destroy()
      await clock.advance(200)
      await ends
    })

    it('destroys all streams when the connection is lost, and later ones too', async () => {
      const { server, agent, sockets, ends, served } = pair(version)
      const streams = Array.from({ length: 10 }, (_, at) => server.dial('tcp', `a:${at}`))
      await turns()
      const errors = [...streams, ...served].map(errorOf)
      sockets[0].destroy()
      for (const error of await Promise.all(errors)) {
        assert.ok(error instanceof TunnelError)
        assert.equal(error.code, 'ended')
      }
      for (const end of await ends) assert.ok(end.status === 'rejected' && end.reason instanceof WebSocketError)
      assert.equal(((await errorOf(server.dial('tcp', 'a:1'))) as TunnelError).code, 'ended')
      await turns()
      assert.deepEqual([server.streams, agent.streams], [0, 0])
    })

    it('closes without an error', async () => {
      const { server, ends, served } = pair(version)
      const stream = server.dial('tcp', 'a:1')
      await turns()
      const errors = [stream, served[0]!].map(errorOf)
      await server.close()
      await Promise.all(errors)
      assert.deepEqual(
        (await ends).map(({ status }) => status),
        ['fulfilled', 'fulfilled'],
      )
    })

    it('carries a thousand streams', async () => {
      const { server, agent } = pair(version, { accept: () => (stream) => void stream.pipe(stream) })
      const answers = Array.from({ length: 1000 }, async (_, at) => {
        const stream = server.dial('tcp', `a:${at}`, { priority: at % 2 === 0 ? 'bulk' : 'interactive' })
        stream.write(`stream ${at}`)
        const [bytes] = (await once(stream, 'data')) as [Buffer]
        stream.destroy()
        return bytes.toString() === `stream ${at}`
      })
      assert.ok((await Promise.all(answers)).every(Boolean))
      await turns()
      assert.deepEqual([server.streams, agent.streams], [0, 0])
    })

    it('sends a small request while bulk streams are busy', async () => {
      const { server, sockets } = pair(version, { accept: () => (stream) => void stream.resume() })
      const bulk = Array.from({ length: 4 }, () => server.dial('tcp', 'a:1', { priority: 'bulk' }))
      for (const stream of bulk) stream.write(Buffer.alloc(4 * MIB))
      await turns(2)
      const small = server.dial('tcp', 'a:2')
      small.write('hello', () => undefined)
      await turns(2)
      assert.equal(small.writableLength, 0)
      assert.ok(bulk.every(({ writableLength }) => writableLength > 0))
      assert.ok(sockets[0].inFlight < 10)
    })

    it('keeps sending bulk data while an interactive stream is always busy', async () => {
      let got = 0
      const { server } = pair(version, {
        accept: (_, address) => (stream) => {
          stream.on('data', (bytes: Buffer) => (got += address === 'bulk:1' ? bytes.length : 0))
        },
      })
      const busy = server.dial('tcp', 'a:1')
      keepWriting(busy)
      server.dial('tcp', 'bulk:1', { priority: 'bulk' }).write(Buffer.alloc(128 * KIB))
      await turns(300)
      assert.equal(got, 128 * KIB)
      busy.destroy()
    })

    it('ends with FrameError after a malformed message', async () => {
      for (const message of [Buffer.alloc(0), Buffer.alloc(100, 0xff), 'text']) {
        const { peer, ended, tunnel } = strange(version)
        const stream = tunnel.dial('tcp', 'a:1')
        const error = errorOf(stream)
        await peer.send(message)
        await assert.rejects(ended, FrameError)
        assert.equal(((await error) as TunnelError).code, 'ended')
      }
    })

    it('fails only with its own errors for random frames', async () => {
      const random = createSeededRandom(11)
      for (let round = 0; round < 300; round++) {
        const { peer, ended, tunnel } = strange(version, { accept: () => (stream) => void stream.pipe(stream) })
        tunnel.dial('tcp', 'a:1').resume()
        for (let sent = 0; sent < 20; sent++) {
          const kind = random.int(24)
          const body = [open, connect, random.bytes(random.int(20)), encodeWindow(random.int(1000))][random.int(4)]!
          await peer.send(encodeFrame(1, { stream: random.int(6), kind, body }))
        }
        await turns(5)
        peer.destroy()
        await assert.rejects(ended, (error) => error instanceof FrameError || error instanceof WebSocketError)
      }
    })

    it('bounds the queue for a peer that does not read', async () => {
      const { peer, ended } = strange(version)
      // Never flushed: the socket accepts nothing more.
      const stuck = SimulatedWebSocket.pair({ clock: createVirtualClock(), protocol: protocolOf(version) })[0]
      stuck.send = () => new Promise(() => undefined)
      const tunnel = new Tunnel(stuck, { clock: createVirtualClock() })
      const broken = assert.rejects(tunnel.serve(), { code: 'overflow' })
      const refused = version === 2 ? FRAME_KINDS.open : FRAME_KINDS.connect
      const body = version === 2 ? open : connect
      for (let at = 0; at < 60_000; at++)
        stuck.arrive({ data: encodeFrame(1, { stream: 2 * at + 1, kind: refused, body }), isBinary: true })
      await broken
      peer.destroy()
      await assert.rejects(ended)
    })

    it('accepts no more streams than fit into memory', async () => {
      const { send, tunnel, of } = strange(version, { maxBufferedBytes: MIB, accept: () => () => undefined })
      for (let at = 0; at < 1000; at++)
        send(2 * at + 1, version === 2 ? FRAME_KINDS.open : FRAME_KINDS.connect, version === 2 ? open : connect)
      await turns(100)
      assert.equal(tunnel.streams, 256)
      assert.equal(of(version === 2 ? FRAME_KINDS.reset : FRAME_KINDS.error).length, 744)
    })
  })

describe('tunnel of version 1 with remotedialer as its peer', () => {
  it('numbers streams of the server from 2 and of the agent from 1', async () => {
    for (const [side, ids] of [
      ['server', [2, 4]],
      ['agent', [1, 3]],
    ] as const) {
      const { tunnel, of } = strange(1, { side })
      tunnel.dial('tcp', 'a:1')
      tunnel.dial('tcp', 'a:1')
      await turns()
      assert.deepEqual(
        of(FRAME_KINDS.connect).map(({ stream, body }) => [stream, body.toString()]),
        ids.map((id) => [id, 'tcp/a:1']),
      )
    }
  })

  it('sends a pause above 256 KiB and a resume below 64 KiB', async () => {
    const { tunnel, send, of } = strange(1)
    const stream = tunnel.dial('tcp', 'a:1')
    for (let sent = 0; sent < 8; sent++) send(2, FRAME_KINDS.data, Buffer.alloc(32 * KIB))
    await turns()
    assert.equal(of(FRAME_KINDS.pause).length, 0)
    send(2, FRAME_KINDS.data, 'x')
    await turns()
    assert.equal(of(FRAME_KINDS.pause).length, 1)
    for (let sent = 0; sent < 500; sent++) send(2, FRAME_KINDS.data, Buffer.alloc(32 * KIB))
    await turns()
    assert.equal(stream.destroyed, false, 'bytes in flight are no offence')
    assert.equal(of(FRAME_KINDS.pause).length, 1)
    let got = 0
    stream.on('data', (bytes: Buffer) => (got += bytes.length))
    await turns(100)
    assert.equal(got, 508 * 32 * KIB + 1)
    assert.equal(of(FRAME_KINDS.resume).length, 1)
  })

  it('stops sending between pause and resume', async () => {
    const { tunnel, send, of } = strange(1)
    const stream = tunnel.dial('tcp', 'a:1')
    await turns()
    send(2, FRAME_KINDS.pause)
    await turns()
    stream.write('hello')
    await turns()
    assert.equal(of(FRAME_KINDS.data).length, 0)
    send(2, FRAME_KINDS.resume)
    await turns()
    assert.equal(of(FRAME_KINDS.data)[0]?.body.toString(), 'hello')
  })

  it('ends if more data waits for readers than the limit', async () => {
    const { tunnel, send, ended } = strange(1, { maxBufferedBytes: MIB })
    const stream = tunnel.dial('tcp', 'a:1')
    const error = errorOf(stream)
    for (let sent = 0; sent < 40; sent++) send(2, FRAME_KINDS.data, Buffer.alloc(32 * KIB))
    await assert.rejects(ended, { code: 'overflow' })
    assert.equal(((await error) as TunnelError).code, 'ended')
  })

  it('does not close a dialed stream before its peer has closed it', async () => {
    const { tunnel, send, of } = strange(1)
    const stream = tunnel.dial('tcp', 'a:1')
    stream.end('request')
    await turns()
    assert.equal(of(FRAME_KINDS.error).length, 0)
    send(2, FRAME_KINDS.data, 'answer')
    send(2, FRAME_KINDS.error, 'EOF')
    assert.equal(await text(stream), 'answer')
    await turns()
    assert.equal(of(FRAME_KINDS.error).length, 0, 'the other side has no stream any more')
    assert.equal(tunnel.streams, 0)
  })

  it('closes an accepted stream when its handler ends it', async () => {
    const { tunnel, send, of } = strange(1, { accept: () => (stream) => void stream.end('answer') })
    send(1, FRAME_KINDS.connect, connect)
    await turns()
    assert.deepEqual(
      [...of(FRAME_KINDS.data), ...of(FRAME_KINDS.error)].map(({ body }) => body.toString()),
      ['answer', 'EOF'],
    )
    tunnel.dial('tcp', 'a:1')
    assert.equal(tunnel.streams, 2, 'its reader has not read the end')
  })

  it('completes writes after the peer has closed the stream', async () => {
    const { tunnel, send } = strange(1)
    const stream = tunnel.dial('tcp', 'a:1')
    send(2, FRAME_KINDS.pause)
    send(2, FRAME_KINDS.error, 'EOF')
    await turns()
    await new Promise((resolve) => {
      stream.write(Buffer.alloc(MIB), resolve)
    })
    assert.equal(await text(stream), '')
    await turns()
    assert.equal(tunnel.streams, 0)
  })

  it('frees streams that a sync frame does not list', async () => {
    const { tunnel, send } = strange(1, { accept: () => () => undefined })
    const [known, gone, fresh] = [1, 2, 3].map(() => tunnel.dial('tcp', 'a:1'))
    send(1, FRAME_KINDS.connect, connect)
    send(2, FRAME_KINDS.data, 'x')
    send(4, FRAME_KINDS.data, 'x')
    await turns()
    assert.equal(tunnel.streams, 4)
    send(0, FRAME_KINDS.sync, encodeSync([2]))
    await turns()
    assert.deepEqual(
      [known, gone, fresh].map((stream) => stream!.destroyed),
      [false, true, false],
      'the frame that opens the last one may still be on its way',
    )
    assert.equal(tunnel.streams, 2)
    send(0, FRAME_KINDS.sync, encodeSync([2]))
    await turns()
    assert.equal(fresh!.destroyed, true)
    assert.equal(known!.destroyed, false)
  })

  it('sends a sync frame each minute as the agent', async () => {
    const { clock, tunnel, of } = strange(1, { side: 'agent' })
    tunnel.dial('tcp', 'a:1')
    await clock.advance(60_000)
    await turns()
    assert.deepEqual(
      of(FRAME_KINDS.sync).map(({ stream, body }) => [stream, body.toString('hex')]),
      [[0, '0100000000000000']],
    )
  })

  it('responds with an error to data for an unknown stream, and ignores other frames for it', async () => {
    const { send, of, received } = strange(1)
    send(9, FRAME_KINDS.data, 'x')
    for (const kind of [3, 4, 5, 6, 7, 9, 99]) send(9, kind, 'x')
    await turns()
    assert.equal(of(FRAME_KINDS.error)[0]?.body.toString(), 'there is no such connection')
    assert.equal(received.length, 1)
  })
})

describe('tunnel of version 2', () => {
  it('ends both directions of a stream independently', async () => {
    const { server, agent, served } = pair(2)
    const stream = server.dial('tcp', 'a:1')
    stream.end('request')
    await turns()
    // Not `text`, which destroys a stream at its end.
    const got: string[] = []
    served[0]!.on('data', (bytes: Buffer) => got.push(bytes.toString())).on('end', () => got.push('end'))
    await turns()
    assert.deepEqual(got, ['request', 'end'])
    served[0]!.end('answer')
    assert.equal(await text(stream), 'answer')
    await turns()
    assert.deepEqual([server.streams, agent.streams], [0, 0])
    assert.deepEqual([stream.errored, served[0]!.errored], [null, null])
  })

  it('resets a stream whose peer exceeds the window', async () => {
    const { tunnel, send, of } = strange(2)
    const [stream, other] = [tunnel.dial('tcp', 'a:1'), tunnel.dial('tcp', 'a:1')]
    const error = errorOf(stream)
    for (let sent = 0; sent < 20; sent++) send(2, FRAME_KINDS.data, Buffer.alloc(32 * KIB))
    assert.equal(((await error) as TunnelError).code, 'window')
    await turns()
    const [reset] = of(FRAME_KINDS.reset)
    assert.equal(decodeReset(reset!.body).code, RESET_CODES.window)
    assert.equal(of(FRAME_KINDS.reset).length, 1)
    assert.equal(other.destroyed, false)
  })

  const OFFENCES: readonly (readonly [
    title: string,
    frames: readonly (readonly [number, number, Buffer | string])[],
  ])[] = [
    ['data for an unknown stream', [[8, FRAME_KINDS.data, 'x']]],
    ['too large a data frame', [[2, FRAME_KINDS.data, Buffer.alloc(33 * KIB)]]],
    ['a window that is too large', [[2, FRAME_KINDS.window, encodeWindow(MAX_WINDOW_BYTES)]]],
    [
      'data on an ended direction',
      [
        [2, FRAME_KINDS.end, ''],
        [2, FRAME_KINDS.data, 'x'],
      ],
    ],
    [
      'a repeated end frame',
      [
        [2, FRAME_KINDS.end, ''],
        [2, FRAME_KINDS.end, ''],
      ],
    ],
    ['an open frame with an id of this side', [[4, FRAME_KINDS.open, open]]],
    [
      'a repeated stream id',
      [
        [3, FRAME_KINDS.open, open],
        [3, FRAME_KINDS.open, open],
      ],
    ],
    ['a frame kind of version 1', [[2, FRAME_KINDS.pause, '']]],
    ['too long a probe', [[0, FRAME_KINDS.probe, 'x'.repeat(9)]]],
    ['an empty reset', [[2, FRAME_KINDS.reset, '']]],
  ]
  for (const [title, frames] of OFFENCES)
    it(`ends with FrameError after ${title}`, async () => {
      const { tunnel, send, ended } = strange(2, { accept: () => () => undefined })
      tunnel.dial('tcp', 'a:1')
      for (const frame of frames) send(...frame)
      await assert.rejects(ended, FrameError)
    })

  it('ignores frames that arrive for a stream that it has just closed', async () => {
    const { tunnel, send, received } = strange(2)
    tunnel.dial('tcp', 'a:1').destroy()
    await turns()
    const before = received.length
    for (const kind of [FRAME_KINDS.data, FRAME_KINDS.end, FRAME_KINDS.reset]) send(2, kind, 'x')
    await turns()
    assert.deepEqual([tunnel.streams, received.length], [0, before])
  })

  it('resets the stream with the most data if more data waits than the limit', async () => {
    const { tunnel, send, ended, peer } = strange(2, { maxBufferedBytes: 300 * KIB })
    const streams = [1, 2, 3].map(() => tunnel.dial('tcp', 'a:1'))
    for (let sent = 0; sent < 4; sent++) {
      send(4, FRAME_KINDS.data, Buffer.alloc(32 * KIB))
      send(4, FRAME_KINDS.data, Buffer.alloc(32 * KIB))
      send(6, FRAME_KINDS.data, Buffer.alloc(32 * KIB))
    }
    await turns()
    assert.deepEqual(
      streams.map(({ destroyed }) => destroyed),
      [false, true, false],
    )
    peer.destroy()
    await assert.rejects(ended, WebSocketError)
  })

  it('sends no more data than the window, in frames of limited size', async () => {
    const { tunnel, send, of } = strange(2)
    const stream = tunnel.dial('tcp', 'a:1')
    stream.write(Buffer.alloc(MIB))
    await turns()
    const sizes = (): number[] => of(FRAME_KINDS.data).map(({ body }) => body.length)
    assert.deepEqual(sizes(), Array(8).fill(32 * KIB))
    send(2, FRAME_KINDS.window, encodeWindow(5))
    await turns()
    assert.equal(sizes()[8], 5)
  })

  it('grows the window on a network with high latency', async () => {
    const { clock, server, sockets } = pair(2, { delayMs: 100, accept: () => (stream) => void stream.resume() })
    keepWriting(server.dial('tcp', 'a:1'))
    let most = 0
    for (let step = 0; step < 60; step++) {
      await clock.advance(50)
      most = Math.max(most, sockets[0].inFlight * 32 * KIB)
    }
    assert.ok(most > 4 * MIB && most <= MAX_WINDOW_BYTES + MIB, `${most} bytes in flight`)
  })

  it('does not grow the window of a slow reader', async () => {
    const { clock, server, served } = pair(2, { delayMs: 1 })
    const stream = server.dial('tcp', 'a:1')
    await clock.advance(10)
    stream.write(Buffer.alloc(8 * MIB))
    for (let round = 0; round < 200; round++) {
      await clock.advance(10)
      served[0]!.read(Math.min(4 * KIB, served[0]!.readableLength))
    }
    let waiting = 0
    served[0]!.on('data', (bytes: Buffer) => (waiting += bytes.length))
    stream.destroy()
    await turns()
    assert.ok(waiting <= 512 * KIB, `${waiting} bytes`)
  })

  it('keeps the sum of all windows below the limit', async () => {
    const { clock, server, sockets } = pair(2, {
      delayMs: 100,
      accept: () => (stream) => void stream.resume(),
      agent: { maxBufferedBytes: 2 * MIB },
    })
    for (let at = 0; at < 4; at++) {
      const stream = server.dial('tcp', 'a:1')
      keepWriting(stream)
    }
    let most = 0
    for (let step = 0; step < 60; step++) {
      await clock.advance(50)
      most = Math.max(most, sockets[0].inFlight * 32 * KIB)
    }
    assert.ok(most <= 2.5 * MIB, `${most} bytes in flight`)
  })

  it('reports no silence of a peer that answers probes', async () => {
    const { clock, server } = pair(2, { delayMs: 20 })
    await turns()
    await clock.advance(60_000)
    assert.equal(server.silentMs(), 0)
    await clock.advance(100)
    assert.equal(server.silentMs(), 0)
  })

  it('reports how long a peer has not answered a probe', async () => {
    const { clock, tunnel, send, of } = strange(2)
    await turns()
    await clock.advance(5000)
    assert.equal(tunnel.silentMs(), 5000)
    assert.equal(of(FRAME_KINDS.probe).length, 1)
    // Any frame is a sign of life.
    send(1, FRAME_KINDS.open, open)
    await turns()
    await clock.advance(2000)
    assert.equal(tunnel.silentMs(), 2000)
    send(0, FRAME_KINDS.echo, of(FRAME_KINDS.probe)[0]?.body)
    await turns()
    assert.equal(tunnel.silentMs(), 0)
  })

  it('answers only the latest of many probes', async () => {
    const [socket] = SimulatedWebSocket.pair({ clock: createVirtualClock(), protocol: TUNNEL_PROTOCOL })
    let sent = 0
    socket.send = () => {
      sent++
      return new Promise(() => undefined)
    }
    const tunnel = new Tunnel(socket, { clock: createVirtualClock() })
    void tunnel.serve().catch(() => undefined)
    const probe = encodeFrame(1, { stream: 0, kind: FRAME_KINDS.probe, body: Buffer.alloc(8) })
    for (let at = 0; at < 100_000; at++) socket.arrive({ data: probe, isBinary: true })
    await turns()
    assert.ok(sent < 5000, `${sent} answers`)
    socket.destroy()
  })
})
