/**
 * Tests the management server with a cluster agent that speaks remotedialer's protocol: frames, parameters, and TLS
 * to the API server.
 */
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { createServer, type Server } from 'node:https'
import type { AddressInfo } from 'node:net'
import { after, before, describe, it } from 'node:test'

import { realClock } from '#lib/clock.ts'
import { connectWebSocket, WebSocketError } from '#lib/http/websocket.ts'
import { secureRandom, uuid } from '#lib/random.ts'
import { connectTo } from '#lib/tunnel/connect-to.ts'
import { Tunnel } from '#lib/tunnel/tunnel.ts'
import { createAuthority } from '#lib/x509/authority.ts'
import { Clusters } from '#management/kinds/cluster.ts'

import { eventually, type ManagementBed, startManagementBed } from './bed.ts'
import { probeAnswer } from './downstream.ts'

const SERVICE_ACCOUNT = 'token-of-the-service-account'
const BYTES = 3 << 20

describe("Rancher's cluster agent", () => {
  const uid = uuid(secureRandom)
  const authority = createAuthority({ commonName: 'kubernetes' }, { clock: realClock, random: secureRandom })
  const foreign = createAuthority({ commonName: 'kubernetes' }, { clock: realClock, random: secureRandom })
  const seen: { readonly url: string; readonly headers: Readonly<Record<string, unknown>> }[] = []
  let bed: ManagementBed
  let apiServer: Server
  let cluster: string
  let token: string

  before(async () => {
    bed = await startManagementBed()
    const pair = authority.issue({ commonName: 'kube-apiserver', names: { ips: ['127.0.0.1'] }, purpose: 'server' })
    apiServer = createServer({ cert: pair.certificatePem, key: pair.keyPem }, (request, response) => {
      const url = request.url ?? ''
      if (request.headers.authorization !== `Bearer ${SERVICE_ACCOUNT}`) return void response.writeHead(401).end('{}')
      seen.push({ url, headers: request.headers })
      const probe = probeAnswer(url, uid)
      let bytes = 0
      request.on('data', (piece: Buffer) => (bytes += piece.length))
      request.on('end', () => {
        const body =
          probe ?? (url.includes('/big') ? 'x'.repeat(BYTES) : JSON.stringify({ items: [], bytes, metadata: {} }))
        response.writeHead(200, { 'content-type': 'application/json' }).end(body)
      })
    })
    apiServer.listen(0, '127.0.0.1')
    await once(apiServer, 'listening')
    const body = { displayName: 'rancher', agent: 'remotedialer' }
    const made = await bed.request('POST', '/v3/clusters', { token: bed.administrator, body })
    assert.equal(made.status, 201, made.text)
    assert.equal(made.body['manifestUrl'], undefined)
    cluster = made.body['cluster'].metadata.name as string
    token = made.body['token'] as string
  })
  after(async () => {
    await bed[Symbol.asyncDispose]()
    apiServer.closeAllConnections()
    apiServer.close()
  })

  interface Plan {
    readonly token?: string
    readonly path?: string
    readonly caCert?: string
  }

  /** Resolves with the status of a refused handshake, or a function that ends the connection. */
  async function connect(plan: Plan = {}): Promise<number | (() => Promise<void>)> {
    const { path = '/v3/connect', caCert = authority.certificatePem } = plan
    const { port } = apiServer.address() as AddressInfo
    const parameters = {
      cluster: { address: `127.0.0.1:${port}`, token: SERVICE_ACCOUNT, caCert: Buffer.from(caCert).toString('base64') },
    }
    try {
      const connection = await connectWebSocket({
        clock: realClock,
        url: `${bed.url.replace('https', 'wss')}${path}`,
        headers: {
          'x-api-tunnel-token': plan.token ?? token,
          'x-api-tunnel-params': Buffer.from(JSON.stringify(parameters)).toString('base64'),
        },
        tls: { ca: bed.ca },
      })
      assert.equal(connection.protocol, '')
      const tunnel = new Tunnel(connection, { clock: realClock, side: 'agent', accept: connectTo(() => true) })
      const ended = tunnel.serve().catch(() => undefined)
      return async () => {
        await tunnel.close()
        await ended
      }
    } catch (error) {
      if (error instanceof WebSocketError) return error.status
      throw error
    }
  }

  const agentOf = (): { connectedAt?: string; disconnectedAt?: string; version?: string } =>
    bed.running.objects.get(Clusters, cluster)?.status?.agent ?? {}
  const isConnected = (): boolean => agentOf().connectedAt !== undefined && agentOf().disconnectedAt === undefined
  const ask = (path: string, body?: string): ReturnType<ManagementBed['request']> =>
    bed.request(body === undefined ? 'GET' : 'POST', `/k8s/clusters/${cluster}${path}`, {
      token: bed.administrator,
      ...(body !== undefined && { body }),
    })

  it('connects repeatedly with the same registration token', async () => {
    for (const path of ['/v3/connect/register', '/v3/connect', '/v3/connect/register']) {
      const end = await connect({ path })
      assert.equal(typeof end, 'function', String(end))
      await eventually('the agent is connected', isConnected)
      assert.equal((await ask('/api/v1/pods')).status, 200)
      await (end as () => Promise<void>)()
      await eventually('the agent is away', () => !isConnected())
    }
    assert.equal(agentOf().version, 'remotedialer')
  })

  it('receives requests with the impersonated user, but without credentials of the caller', async () => {
    const end = await connect()
    await eventually('the agent is connected', isConnected)
    seen.length = 0
    assert.equal((await ask('/api/v1/secrets')).status, 200)
    const headers: Readonly<Record<string, unknown>> = seen.find(({ url }) => url === '/api/v1/secrets')?.headers ?? {}
    assert.match(String(headers['impersonate-user']), /^u-/)
    assert.match(String(headers['impersonate-group']), /hk:cluster:cluster-owner/)
    assert.ok(!JSON.stringify(headers).includes(bed.administrator))
    const big = await ask('/big')
    assert.equal(big.text.length, BYTES)
    assert.equal((await ask('/upload', JSON.stringify('x'.repeat(BYTES)))).body['bytes'], BYTES + 2)
    await (end as () => Promise<void>)()
  })

  it('is refused if the certificate of the API server is not trusted', async () => {
    const end = await connect({ caCert: foreign.certificatePem })
    // The handshake succeeds; what is behind the tunnel is another server.
    await eventually('the connection was refused', () => /certificate|authority/i.test(bed.logged()))
    assert.equal(isConnected(), false)
    await (end as () => Promise<void>)()
  })

  it('sends a credential that the server neither stores nor logs', async () => {
    const end = await connect()
    await eventually('the agent is connected', isConnected)
    const secrets = await bed.request('GET', '/k8s/clusters/local/api/v1/secrets', { token: bed.administrator })
    const objects = await bed.request('GET', '/k8s/clusters/local/apis/management.hyperkube.io/v1/clusters', {
      token: bed.administrator,
    })
    const encoded = Buffer.from(SERVICE_ACCOUNT).toString('base64')
    for (const text of [secrets.text, objects.text, bed.logged(), JSON.stringify(bed.audit)])
      assert.ok(!text.includes(SERVICE_ACCOUNT) && !text.includes(encoded))
    await (end as () => Promise<void>)()
  })

  it('is refused by Clusters without agent remotedialer, and for a cluster that is already imported', async () => {
    const made = await bed.request('POST', '/v3/clusters', { token: bed.administrator, body: { displayName: 'ours' } })
    assert.equal(await connect({ token: made.body['token'] as string, path: '/v3/connect/register' }), 403)
    assert.equal(await connect({ token: 'unknown' }), 401)
    const again = { displayName: 'again', agent: 'remotedialer' }
    const second = await bed.request('POST', '/v3/clusters', { token: bed.administrator, body: again })
    const id = second.body['cluster'].metadata.name as string
    const end = await connect({ token: second.body['token'] as string })
    await eventually('the second import is refused', () => /imported already/.test(bed.logged()))
    assert.equal(bed.running.objects.get(Clusters, id)?.status?.agent, undefined)
    await (end as () => Promise<void>)()
    const wrong = { displayName: 'x', agent: 'other' }
    assert.equal((await bed.request('POST', '/v3/clusters', { token: bed.administrator, body: wrong })).status, 400)
  })
})
