/** Tests tunnels over real WebSockets and TCP connections on loopback. */
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { createServer, type Server } from 'node:net'
import type { Duplex } from 'node:stream'
import { text } from 'node:stream/consumers'
import { describe, it } from 'node:test'

import { eventually } from '#kits/lib/eventually.ts'
import { realClock } from '#lib/clock.ts'
import { createHttpServer } from '#lib/http/server.ts'
import { acceptWebSocket, connectWebSocket, type WebSocketConnection } from '#lib/http/websocket.ts'
import { createSeededRandom } from '#lib/random.ts'
import { connectTo } from '#lib/tunnel/connect-to.ts'
import { Tunnel, TUNNEL_PROTOCOL } from '#lib/tunnel/tunnel.ts'

const MIB = 1 << 20
const PIECE = Buffer.alloc(64 << 10, 'x')

interface Bed extends AsyncDisposable {
  readonly server: Tunnel
  readonly agent: Tunnel
  readonly connection: WebSocketConnection
  /** The address of a TCP server whose connections are handled so. */
  listen(serve: (socket: Duplex) => void): Promise<string>
}

async function start(version: 1 | 2): Promise<Bed> {
  const closing = new AsyncDisposableStack()
  const accepted = Promise.withResolvers<Tunnel>()
  const http = createHttpServer({
    clock: realClock,
    upgrades: ['websocket'],
    async serve(exchange) {
      const choose = (offered: readonly string[]): string | undefined =>
        version === 2 ? offered.find((name) => name === TUNNEL_PROTOCOL) : undefined
      const connection = await acceptWebSocket(exchange, { clock: realClock, choose, pingIntervalMs: 100 })
      const tunnel = new Tunnel(connection, { clock: realClock })
      accepted.resolve(tunnel)
      await tunnel.serve().catch(() => undefined)
    },
  })
  closing.defer(() => http.drain(0))
  const bound = await http.listen({ host: '127.0.0.1', port: 0 })
  assert.ok('port' in bound)
  const connection = await connectWebSocket({
    clock: realClock,
    url: `ws://127.0.0.1:${bound.port}/`,
    protocols: [TUNNEL_PROTOCOL],
    isProtocolOptional: true,
    // A busy tunnel must not take itself for a dead one.
    pingIntervalMs: 500,
  })
  closing.defer(() => connection.destroy())
  const accept = connectTo((_, address) => address.startsWith('127.0.0.1:'))
  const agent = new Tunnel(connection, { clock: realClock, side: 'agent', accept })
  void agent.serve().catch(() => undefined)
  return {
    server: await accepted.promise,
    agent,
    connection,
    async listen(serve) {
      const tcp: Server = createServer({ allowHalfOpen: true }, (socket) => {
        socket.on('error', () => undefined)
        closing.defer(() => void socket.destroy())
        serve(socket)
      })
      closing.defer(() => void tcp.close())
      await once(tcp.listen(0, '127.0.0.1'), 'listening')
      return `127.0.0.1:${(tcp.address() as { readonly port: number }).port}`
    },
    [Symbol.asyncDispose]: () => closing.disposeAsync(),
  }
}

/** Writes so many bytes as fast as the stream accepts them. */
async function send(stream: Duplex, bytes: number): Promise<void> {
  for (let sent = 0; sent < bytes; sent += PIECE.length) if (!stream.write(PIECE)) await once(stream, 'drain')
}

/** Reads so many bytes with random pauses. */
function receive(stream: Duplex, bytes: number, seed: number): Promise<void> {
  const random = createSeededRandom(seed)
  return new Promise((resolve, reject) => {
    let left = bytes
    stream.on('error', reject).on('data', (piece: Buffer) => {
      left -= piece.length
      if (left <= 0) return resolve()
      if (random.int(100) > 0) return
      stream.pause()
      realClock.after(random.int(5), () => stream.resume())
    })
  })
}

for (const version of [1, 2] as const)
  describe(`Tunnel over a WebSocket, version ${version}`, () => {
    it('copies much in both directions beside small requests', async () => {
      await using bed = await start(version)
      assert.equal(bed.server.protocolVersion, version)
      assert.equal(bed.agent.protocolVersion, version)
      const bytes = (version === 2 ? 300 : 100) * MIB
      const received = Promise.withResolvers<void>()
      const copy = await bed.listen((socket) => {
        receive(socket, bytes, 1).then(received.resolve, received.reject)
        void send(socket, bytes).catch(received.reject)
      })
      const echo = await bed.listen((socket) => socket.pipe(socket))
      const stream = bed.server.dial('tcp', copy, { priority: 'bulk' })
      const over = new AbortController()
      const copying = Promise.all([send(stream, bytes), receive(stream, bytes, 2), received.promise]).finally(() =>
        over.abort(),
      )
      while (!over.signal.aborted) {
        const terminal = bed.server.dial('tcp', echo)
        terminal.write('ls\n')
        assert.equal(String((await once(terminal, 'data'))[0]), 'ls\n')
        terminal.destroy()
        await new Promise((resolve) => setImmediate(resolve))
      }
      await copying
      stream.destroy()
      await eventually(
        () => [bed.server.streams, bed.agent.streams],
        ([one, other]) => one === 0 && other === 0,
      )
    })

    it('reports a refused port and an address that is not allowed', async () => {
      await using bed = await start(version)
      const address = await bed.listen(() => undefined)
      await assert.rejects(text(bed.server.dial('tcp', '127.0.0.1:1')), /ECONNREFUSED/)
      for (const other of ['192.0.2.1:80', '127.0.0.1:', '127.0.0.1:70000', 'x'])
        await assert.rejects(text(bed.server.dial('tcp', other)), {
          message: `connecting to tcp/${other} is not allowed`,
        })
      await assert.rejects(text(bed.server.dial('udp', address)), /not allowed/)
      await assert.rejects(text(bed.agent.dial('tcp', address)), /not allowed/)
    })

    it('delivers everything before the end of the target', async () => {
      await using bed = await start(version)
      const address = await bed.listen((socket) => socket.resume().end(Buffer.alloc(5 * MIB, 'y')))
      assert.equal((await text(bed.server.dial('tcp', address))).length, 5 * MIB)
    })

    it('resets connections to targets when it is lost', async () => {
      await using bed = await start(version)
      const reset = Promise.withResolvers<Error>()
      const address = await bed.listen((socket) => socket.on('error', reset.resolve).resume())
      const stream = bed.server.dial('tcp', address)
      stream.on('error', () => undefined).write('part of something')
      await eventually(
        () => bed.agent.streams,
        (count) => count === 1,
      )
      bed.connection.destroy()
      assert.match((await reset.promise).message, /ECONNRESET/)
    })
  })

describe('Tunnel over a WebSocket, version 2', () => {
  it('ends both directions independently', async () => {
    await using bed = await start(2)
    const address = await bed.listen((socket) => void text(socket).catch(() => undefined))
    const reverse = await bed.listen((socket) => {
      const pieces: Buffer[] = []
      socket.on('data', (piece: Buffer) => pieces.push(piece))
      socket.on('end', () => socket.end(Buffer.concat(pieces).reverse()))
    })
    const stream = bed.server.dial('tcp', reverse)
    stream.end('abc')
    assert.equal(await text(stream), 'cba')
    bed.server.dial('tcp', address).end('x')
  })
})
