import assert from 'node:assert/strict'
import { connect as connectNet } from 'node:net'
import type { Socket } from 'node:net'
import { after, describe, it } from 'node:test'
import { connect as connectTls } from 'node:tls'

import { realClock } from '../clock.ts'
import { secureRandom } from '../random.ts'
import { createAuthority } from '../x509/authority.ts'
import { createHttpServer } from './server.ts'
import type { ServerTls } from './tls.ts'

const authority = createAuthority({ commonName: 'ca' }, { clock: realClock, random: secureRandom })
const { certificatePem: certificate, keyPem: key } = authority.issue({ commonName: 's', purpose: 'server' })

async function start(tls?: ServerTls): Promise<{ readonly port: number; readonly served: () => number }> {
  let count = 0
  const server = createHttpServer({
    clock: realClock,
    ...(tls === undefined ? {} : { tls }),
    serve(exchange) {
      count++
      exchange.respond(200, [], 'x'.repeat(1000))
    },
  })
  after(() => server.drain(0))
  const bound = await server.listen({ host: '127.0.0.1', port: 0 })
  assert.ok('port' in bound)
  return { port: bound.port, served: () => count }
}

/** Writes the same bytes so often, reading nothing; false when the server has closed the connection. */
async function flood(socket: Socket, bytes: Buffer, rounds: number): Promise<boolean> {
  socket.on('error', () => undefined).pause()
  after(() => void socket.destroy())
  for (let round = 0; round < rounds && !socket.destroyed; round++) {
    if (socket.write(bytes)) continue
    for (let turn = 0; turn < 50 && socket.writableNeedDrain; turn++) await new Promise((next) => setImmediate(next))
  }
  return !socket.destroyed
}

describe('an HTTP client that sends requests but does not read', () => {
  const FRAMES = {
    pings: Buffer.concat([Buffer.from([0, 0, 8, 6, 0, 0, 0, 0, 0]), Buffer.alloc(8)]),
    settings: Buffer.from([0, 0, 0, 4, 0, 0, 0, 0, 0]),
  }
  for (const [what, frame] of Object.entries(FRAMES)) {
    it(`is disconnected for too many ${what} over HTTP/2`, async () => {
      const { port } = await start({ certificate, key })
      const socket = connectTls({ host: '127.0.0.1', port, rejectUnauthorized: false, ALPNProtocols: ['h2'] })
      await new Promise((resolve) => void socket.once('secureConnect', resolve))
      socket.write('PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n')
      socket.write(FRAMES.settings)
      assert.equal(await flood(socket, Buffer.concat(Array.from({ length: 10_000 }, () => frame)), 100), false)
    })
  }

  it('gets no further responses over HTTP/1.1', async () => {
    const { port, served } = await start()
    const requests = Buffer.from('GET / HTTP/1.1\r\nHost: x\r\n\r\n'.repeat(1000))
    const isOpen = await flood(connectNet(port, '127.0.0.1'), requests, 200)
    assert.ok(!isOpen || served() < 50_000, `${served()} answers wait`)
  })
})
