import assert from 'node:assert/strict'
import { duplexPair } from 'node:stream'
import { describe, it } from 'node:test'

import { realClock } from '../clock.ts'
import { asSocket } from '../net/as-socket.ts'
import { createHttpServer } from './server.ts'

describe('ResponseWriter over HTTP/1.1', () => {
  it(
    'waits for drain after pieces slightly smaller than, equal to and larger than the buffer',
    { timeout: 30_000 },
    async () => {
      const server = createHttpServer({
        clock: realClock,
        async serve(exchange) {
          const writer = exchange.stream(200, [])
          const piece = Buffer.alloc(Number(exchange.path.slice(1)))
          for (let count = 0; count < 3; count++) if (!writer.write(piece)) await writer.drained()
          writer.end()
        },
      })
      let accept = (_socket: ReturnType<typeof asSocket>): void => undefined
      server.accept({ address: { path: 'pair' }, accept: (take) => (accept = take), close: () => undefined })
      for (let size = 65_200; size <= 65_560; size += 4) {
        const [client, socket] = duplexPair()
        accept(asSocket(socket))
        client.write(`GET /${size} HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n`)
        let received = 0
        for await (const bytes of client as AsyncIterable<Buffer>) received += bytes.length
        assert.ok(received > 3 * size, String(size))
      }
      await server.drain(0)
    },
  )
})
