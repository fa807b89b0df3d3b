/**
 * Worker thread with the server's end of the tunnel benchmark: it sends, receives and echoes bytes as the stream's
 * address says.
 */
import { type Duplex, Readable } from 'node:stream'
import { parentPort } from 'node:worker_threads'

import { realClock } from '#lib/clock.ts'
import { createHttpServer } from '#lib/http/server.ts'
import { acceptWebSocket, type WebSocketConnection } from '#lib/http/websocket.ts'
import { Tunnel, TUNNEL_PROTOCOL } from '#lib/tunnel/tunnel.ts'

const PIECE = Buffer.alloc(64 << 10, 'x')

function accept(protocol: string, address: string): ((stream: Duplex) => void) | undefined {
  const bytes = Number(address)
  if (protocol === 'echo') return (stream) => void stream.pipe(stream)
  if (protocol === 'source') return (stream) => void Readable.from(pieces(bytes)).pipe(stream)
  if (protocol === 'sink') return (stream) => receive(stream, bytes)
  return undefined
}

function* pieces(bytes: number): Generator<Buffer> {
  for (let sent = 0; sent < bytes; sent += PIECE.length) yield PIECE
}

function receive(stream: Duplex, bytes: number): void {
  let left = bytes
  stream.on('data', (piece: Buffer) => {
    left -= piece.length
    if (left <= 0) stream.end('done')
  })
}

/** The reference: the same messages without a tunnel. */
async function serveBare(connection: WebSocketConnection, [what, bytes]: [string, number]): Promise<void> {
  if (what === 'source') for (const piece of pieces(bytes)) await connection.send(piece)
  let left = bytes
  for await (const { data } of connection) {
    left -= data.length
    if (left <= 0) await connection.send('done')
  }
}

const server = createHttpServer({
  clock: realClock,
  upgrades: ['websocket'],
  async serve(exchange) {
    const [, what = '', bytes] = exchange.path.split('/')
    const choose = (offered: readonly string[]): string | undefined => offered.find((name) => name === TUNNEL_PROTOCOL)
    const connection = await acceptWebSocket(exchange, { clock: realClock, choose, pingIntervalMs: 10_000 })
    if (what === 'tunnel') await new Tunnel(connection, { clock: realClock, accept }).serve().catch(() => undefined)
    else await serveBare(connection, [what, Number(bytes)]).catch(() => undefined)
  },
})
const bound = await server.listen({ host: '127.0.0.1', port: 0 })
parentPort?.once('message', () => void server.drain(0))
parentPort?.postMessage('port' in bound ? bound.port : 0)
