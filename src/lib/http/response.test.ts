import assert from 'node:assert/strict'
import { after, before, describe, it } from 'node:test'

import { realClock, sleep } from '../clock.ts'
import { secureRandom } from '../random.ts'
import { createAuthority } from '../x509/authority.ts'
import { createHttpClient } from './client.ts'
import { createHttpServer, type HttpServer } from './server.ts'

const authority = createAuthority({ commonName: 'test' }, { clock: realClock, random: secureRandom })
const names = { ips: ['127.0.0.1'], dns: ['backend.example'] }
const { certificatePem: certificate, keyPem: key } = authority.issue({ commonName: 'server', names, purpose: 'server' })
const ca = authority.certificatePem

let server: HttpServer
let port = 0

before(async () => {
  server = createHttpServer({
    clock: realClock,
    tls: { certificate, key },
    upgrades: ['other'],
    serve: (exchange) => exchange.respond(exchange.upgradeProtocol === undefined ? 200 : 403, [], 'x'.repeat(50_000)),
  })
  const bound = await server.listen({ host: '127.0.0.1', port: 0 })
  port = 'port' in bound ? bound.port : 0
})

after(() => server.drain(0))

describe('an HTTP response', () => {
  for (const http1Only of [false, true]) {
    it(`is complete if the caller reads it late, over HTTP/${http1Only ? 1 : 2}`, async () => {
      const client = createHttpClient({ clock: realClock, tls: { ca }, http1Only })
      const answer = await client.request({ url: `https://127.0.0.1:${port}/` })
      assert.equal(answer.version, http1Only ? '1.1' : '2')
      await sleep(realClock, 30)
      assert.equal((await answer.bytes(1 << 20)).length, 50_000)
      client.close()
    })
  }

  it('closes the connection if it refuses an upgrade', async () => {
    const client = createHttpClient({ clock: realClock, tls: { ca } })
    const upgrade = { url: `https://127.0.0.1:${port}/`, headers: { upgrade: 'other' } }
    const result = await client.upgrade(upgrade)
    assert.ok(!result.isUpgraded)
    assert.equal((await result.response.bytes(1 << 20)).length, 50_000)
    while (server.connections > 0) await sleep(realClock, 1)
    client.close()
  })
})

describe('an HTTP host whose address the caller resolves', () => {
  it('is reached at that address, with a certificate for its name', async () => {
    const hosts: string[] = []
    const resolve = (host: string): Promise<string> => {
      hosts.push(host)
      return Promise.resolve('127.0.0.1')
    }
    const client = createHttpClient({ clock: realClock, tls: { ca }, resolve })
    const answer = await client.request({ url: `https://backend.example:${port}/` })
    assert.equal((await answer.bytes(1 << 20)).length, 50_000)
    assert.deepEqual(hosts, ['backend.example'])
    await assert.rejects(client.request({ url: `https://other.example:${port}/` }), { code: 'connect' })
    client.close()
  })

  it('is evicted from the pool after too many other hosts, but not during a response', async () => {
    const resolve = (): Promise<string> => Promise.resolve('127.0.0.1')
    const client = createHttpClient({ clock: realClock, tls: { insecure: true }, resolve, maxOrigins: 2 })
    const ask = (name: string): ReturnType<typeof client.request> =>
      client.request({ url: `https://${name}.example:${port}/` })
    const first = await ask('a')
    for (const name of ['b', 'c', 'd', 'e']) await (await ask(name)).bytes(1 << 20)
    assert.equal((await first.bytes(1 << 20)).length, 50_000)
    while (server.connections > 2) await sleep(realClock, 1)
    client.close()
  })

  it('is not connected to if the caller forbids its address', async () => {
    const resolve = (): Promise<never> => Promise.reject(new Error('not there'))
    const client = createHttpClient({ clock: realClock, tls: { ca }, resolve })
    await assert.rejects(client.request({ url: `https://backend.example:${port}/` }), /not there/)
    client.close()
  })
})
