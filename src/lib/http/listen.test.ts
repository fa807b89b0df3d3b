import assert from 'node:assert/strict'
import { once } from 'node:events'
import { connect } from 'node:net'
import { describe, it } from 'node:test'

import { realClock } from '../clock.ts'
import { secureRandom } from '../random.ts'
import { createAuthority } from '../x509/authority.ts'
import { createHttpClient } from './client.ts'
import { bind, type Listener } from './listen.ts'
import { createHttpServer } from './server.ts'

const authority = createAuthority({ commonName: 'ca' }, { clock: realClock, random: secureRandom })
const { certificatePem: certificate, keyPem: key } = authority.issue({
  commonName: 'server',
  names: { ips: ['127.0.0.1'], dns: [] },
  purpose: 'server',
})

async function bound(): Promise<{ listener: Listener; port: number }> {
  const listener = await bind({ host: '127.0.0.1', port: 0 })
  assert.ok('port' in listener.address)
  return { listener, port: listener.address.port }
}

describe('a port that is bound before its HTTP server exists', () => {
  for (const [scheme, tls] of [
    ['http', undefined],
    ['https', { certificate, key }],
  ] as const) {
    it(`answers early connections over ${scheme} when the server exists`, async () => {
      const { listener, port } = await bound()
      const client = createHttpClient({ clock: realClock, tls: { ca: authority.certificatePem } })
      const early = client.request({ url: `${scheme}://127.0.0.1:${port}/` })
      // The request has arrived as well, before the server accepts.
      const raw = connect(port, '127.0.0.1')
      raw.write('GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n')
      await once(raw, 'connect')
      const server = createHttpServer({
        clock: realClock,
        serve: (exchange) => exchange.respond(200, [], 'ok'),
        ...(tls && { tls }),
      })
      server.accept(listener)
      assert.equal(await (await early).text(10), 'ok')
      if (tls === undefined) assert.match(String((await once(raw, 'data'))[0]), /^HTTP\/1\.1 200 /)
      client.close()
      raw.destroy()
      await server.drain(0)
    })
  }

  it('drops waiting connections if no server will exist', async () => {
    const { listener, port } = await bound()
    const socket = connect(port, '127.0.0.1')
    socket.on('error', () => undefined)
    await once(socket, 'connect')
    listener.close()
    await once(socket, 'close')
  })
})
