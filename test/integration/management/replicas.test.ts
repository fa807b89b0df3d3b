/**
 * Tests several replicas of the management server on one etcd: sessions, tunnels, leader election, death of a
 * replica, and loss of etcd.
 */
import assert from 'node:assert/strict'
import { rmSync } from 'node:fs'
import { after, before, describe, it } from 'node:test'

import { realClock } from '#lib/clock.ts'
import { connectWebSocket, WebSocketError } from '#lib/http/websocket.ts'
import { secureRandom } from '#lib/random.ts'
import { encodeHead } from '#lib/tunnel/request-head.ts'
import type { Accept, Tunnel } from '#lib/tunnel/tunnel.ts'
import { createAuthority, loadAuthority } from '#lib/x509/authority.ts'
import { issueReplicaCertificates } from '#management/replicas/certificates.ts'
import { startCluster, type TestCluster, whyNoEtcd } from '#storage/etcd/etcd-cluster.fixture.ts'

import { newCredential, runTestAgent } from './bed.ts'
import { type EchoCluster, startEchoCluster } from './downstream.ts'
import { openTunnel } from './machine-bed.ts'
import { eventuallySlow, freePort, Relay, Replica, startAnywhere } from './replica-bed.ts'

const TOKEN = 'the token that all replicas of this test share'
const BODY_BYTES = 8 << 20

describe('replicas of the management server', { skip: whyNoEtcd() ?? false, timeout: 300_000 }, () => {
  let etcd: TestCluster
  let echo: EchoCluster
  /** Between the third replica and etcd. */
  let wire: Relay
  /** The one address of all replicas. */
  let address: Relay
  let administrator: string
  let cluster: string
  let stopAgent: () => Promise<void>
  const replicas: Replica[] = []
  const credential = newCredential()
  const [first, second, third] = [0, 1, 2].map((at) => () => replicas[at] as Replica) as [
    () => Replica,
    () => Replica,
    () => Replica,
  ]
  const running = (): Replica[] => replicas.filter(({ isRunning }) => isRunning)
  const inCluster = (replica: Replica, method: string, path: string, body?: unknown): ReturnType<Replica['request']> =>
    replica.request(method, `/k8s/clusters/${cluster}${path}`, { token: administrator, body })
  const holder = async (): Promise<Replica> => {
    const { body } = await (running()[0] as Replica).request('GET', `/v3/clusters/${cluster}`, { token: administrator })
    const id = body['status'].agent.replica as string
    return running().find(({ logged }) => logged.includes(id)) as Replica
  }

  before(async () => {
    etcd = await startCluster()
    echo = await startEchoCluster()
    echo.answer = (request, response) => {
      let bytes = 0
      request.on('data', (piece: Buffer) => (bytes += piece.length))
      request.on('end', () =>
        response.writeHead(200, { 'content-type': 'text/plain' }).end(answerTo(request.url, bytes)),
      )
    }
    const [datastore = ''] = etcd.urls
    wire = new Relay(() => [Number(new URL(datastore).port)])
    await wire.listen()
    address = new Relay(() => running().map(({ port }) => port))
    const serverUrl = `https://127.0.0.1:${await address.listen()}`
    const stores = [datastore, datastore, `http://127.0.0.1:${wire.port}`]
    for (const store of stores)
      replicas.push(new Replica(await freePort(), { datastore: store, serverUrl, token: TOKEN }))
    await Promise.all([startAnywhere(first()), startAnywhere(second())])
    await startAnywhere(third())
  })
  after(async () => {
    await stopAgent?.()
    await Promise.all(replicas.map((replica) => replica.end('SIGKILL')))
    for (const { dataDir } of replicas) rmSync(dataDir, { recursive: true, force: true })
    wire.close()
    address.close()
    await echo[Symbol.asyncDispose]()
    await etcd.stop()
  })

  /** Downloads are as large as their path says. */
  function answerTo(url = '', bytes: number): string {
    const [, size] = /^\/download\/(\d+)/.exec(url) ?? []
    return size === undefined ? `got ${bytes}` : 'x'.repeat(Number(size))
  }

  it('share one certificate authority, and create one administrator', async () => {
    assert.equal(new Set(replicas.map(({ ca }) => ca)).size, 1)
    assert.equal(new Set(replicas.map((replica) => replica.file('encryption.key'))).size, 1)
    const makers = replicas.filter(({ isFirst }) => isFirst)
    assert.equal(makers.length, 1)
    const [maker] = makers
    const other = replicas.find((replica) => replica !== maker) as Replica
    administrator = await (maker as Replica).logIn(other)
  })

  it('refuse to start without the shared token', async () => {
    const [datastore = ''] = etcd.urls
    const stranger = new Replica(await freePort(), { datastore, serverUrl: first().url, token: undefined })
    await assert.rejects(stranger.start(), /Copy the file "replica-token"/)
    rmSync(stranger.dataDir, { recursive: true, force: true })
  })

  it('accept an API token that another replica created, and refuse it after its deletion', async () => {
    for (let turn = 0; turn < 5; turn++) {
      const made = await first().request('POST', '/v3/tokens', { token: administrator, body: {} })
      const token = made.body['token'] as string
      for (const replica of [second(), third()])
        assert.equal((await replica.request('GET', '/v3/me', { token })).status, 200)
      const name = token.split('_')[1] ?? ''
      assert.equal((await second().request('DELETE', `/v3/tokens/${name}`, { token: administrator })).status, 204)
      for (const replica of replicas)
        await eventuallySlow(
          'the token has ended',
          async () => (await replica.request('GET', '/v3/me', { token })).status === 401,
        )
    }
  })

  it('count failed log-ins across all replicas', async () => {
    const body = { username: 'jane', password: 'wrong' }
    const statuses: number[] = []
    for (let turn = 0; turn < 9; turn++) {
      const replica = replicas[turn % 3] as Replica
      statuses.push((await replica.request('POST', '/v3-public/login', { body })).status)
    }
    assert.ok(
      statuses.slice(0, 5).every((status) => status === 401),
      statuses.join(),
    )
    assert.equal(statuses.at(-1), 429, statuses.join())
  })

  it('keep usernames unique if several create the same user', async () => {
    const body = { username: 'jane', password: 'a password for one day' }
    const answers = await Promise.all(
      replicas.map((replica) => replica.request('POST', '/v3/users', { token: administrator, body })),
    )
    assert.deepEqual(
      answers.map(({ status }) => status).toSorted((a, b) => a - b),
      [201, 409, 409],
    )
  })

  it('forward requests for a cluster to the replica with its agent', async () => {
    const made = await first().request('POST', '/v3/clusters', { token: administrator, body: { displayName: 'prod' } })
    assert.equal(made.status, 201, made.text)
    cluster = made.body['cluster'].metadata.name as string
    const agent = { url: `https://127.0.0.1:${address.port}`, ca: first().ca, kubeconfig: echo.kubeconfig }
    const token = made.body['token'] as string
    stopAgent = runTestAgent({ ...agent, registrationToken: token, credential })
    for (const replica of replicas)
      await eventuallySlow(
        'the cluster answers',
        async () => (await inCluster(replica, 'GET', '/hello')).status === 200,
      )
  })

  it('forward large bodies in both directions', async () => {
    for (const replica of replicas) {
      const up = await inCluster(replica, 'POST', '/upload', 'x'.repeat(BODY_BYTES))
      assert.equal(up.text, `got ${BODY_BYTES}`)
      const down = await inCluster(replica, 'GET', `/download/${BODY_BYTES}`)
      assert.equal(down.text.length, BODY_BYTES)
    }
  })

  it('reach a control plane through the replica that its agent is connected to', async () => {
    const made = await first().request('POST', '/v3/clusters', { token: administrator, body: { displayName: 'away' } })
    const id = made.body['cluster'].metadata.name as string
    const body = { roles: ['controlplane'] }
    const machines = `/v3/clusters/${id}/machines`
    const granted = await first().request('POST', `${machines}/registration`, { token: administrator, body })
    const claim = { node: 'cp-1', credential: newCredential(), roles: ['controlPlane'], mode: 'register' } as const
    const answer = Buffer.concat([encodeHead({ status: 200, headers: [] }), Buffer.from('plane')])
    const accept: Accept = () => (stream) => stream.once('data', () => stream.end(answer))
    let tunnel: Tunnel | undefined
    await eventuallySlow('the second replica knows the token', async () => {
      const token = granted.body['token'] as string
      tunnel = await openTunnel(second(), { ...claim, token }, accept).catch(() => undefined)
      return tunnel !== undefined
    })
    const ask = (replica: Replica): ReturnType<Replica['request']> =>
      replica.request('GET', `/k8s/clusters/${id}/api/v1/pods`, { token: administrator })
    for (const replica of replicas)
      await eventuallySlow('the control plane answers', async () => (await ask(replica)).text === 'plane')
    const list = await first().request('GET', machines, { token: administrator })
    assert.equal(list.body['items'][0].status.disconnectedAt, undefined)
    await tunnel?.close()
    for (const replica of replicas)
      await eventuallySlow('nobody answers', async () => (await ask(replica)).status === 503)
  })

  it('refuse connections of clients without a replica certificate', async () => {
    const tools = { clock: realClock, random: secureRandom }
    const foreign = createAuthority({ commonName: 'kubernetes' }, tools)
    const own = loadAuthority({ certificate: first().ca, key: first().file('pki/ca.key') }, tools)
    const admin = { certificate: first().file('pki/admin.crt'), key: first().file('pki/admin.key') }
    const attempt = async (pair: { certificate: string; key: string } | undefined): Promise<number> => {
      const url = `wss://127.0.0.1:${first().port}/v3/replicas/connect`
      const tls = { ca: first().ca, ...pair }
      try {
        const connection = await connectWebSocket({ clock: realClock, url, protocols: ['hyperkube.tunnel.v2'], tls })
        connection.destroy()
        return 101
      } catch (error) {
        return error instanceof WebSocketError ? error.status : 0
      }
    }
    assert.equal(await attempt(undefined), 401)
    assert.equal(await attempt(admin), 401)
    assert.equal(await attempt(issueReplicaCertificates(foreign, 'x').client), 401)
    assert.equal(await attempt(issueReplicaCertificates(own, 'x').server), 401)
    assert.equal(await attempt(issueReplicaCertificates(own, 'x').client), 101)
  })

  it('accept the agent of a replica that died, and send no request twice', async () => {
    const seen = new Map<string, number>()
    echo.answer = (request, response) => {
      seen.set(request.url ?? '', (seen.get(request.url ?? '') ?? 0) + 1)
      request.resume().on('end', () => void response.writeHead(200).end('{}'))
    }
    const dying = await holder()
    const [asked] = running().filter((replica) => replica !== dying)
    const answered = new Set<string>()
    const over = new AbortController()
    const traffic = (async () => {
      for (let n = 0; !over.signal.aborted; n++) {
        const path = `/post/${n}`
        const { status, headers } = await inCluster(asked as Replica, 'POST', path, {})
        if (status === 200) answered.add(path)
        else assert.equal(status, 503)
        if (status === 503 && !seen.has(path)) assert.notEqual(headers['retry-after'], undefined, path)
      }
    })()
    await eventuallySlow('requests are answered', () => answered.size > 20)
    await dying.end('SIGKILL')
    const before = answered.size
    await eventuallySlow('requests are answered again', () => answered.size > before + 50)
    over.abort()
    await traffic
    assert.deepEqual(
      [...seen].filter(([, count]) => count > 1),
      [],
    )
    assert.deepEqual(
      [...answered].filter((path) => !seen.has(path)),
      [],
    )
    await dying.start()
  })

  it('elect another leader when the leader dies', async () => {
    const leader = await findLeader()
    await leader.end('SIGKILL')
    const [other] = running()
    const body = { username: 'john', password: 'a password for one day' }
    const refused = await (other as Replica).request('POST', '/v3/users', { token: administrator, body })
    assert.ok(refused.status === 503 || refused.status === 201, refused.text)
    await eventuallySlow('another replica leads', async () => {
      const { status } = await (other as Replica).request('POST', '/v3/users', { token: administrator, body })
      return status === 201 || status === 409
    })
    await leader.start()
  })

  it('respond with 503 while they are cut off from etcd', async () => {
    const made = await first().request('POST', '/v3/tokens', { token: administrator, body: {} })
    const token = made.body['token'] as string
    assert.equal((await third().request('GET', '/v3/me', { token })).status, 200)
    wire.cut()
    const name = token.split('_')[1] ?? ''
    await eventuallySlow('the token is deleted', async () => {
      const { status } = await first().request('DELETE', `/v3/tokens/${name}`, { token: administrator })
      return status === 200 || status === 404
    })
    await eventuallySlow(
      'the replica stops',
      async () => (await third().request('GET', '/v3/me', { token })).status === 503,
    )
    const refused = await third().request('GET', '/v3/me', { token })
    assert.equal(refused.headers['retry-after'], '2')
    assert.match((await third().request('GET', '/readyz?verbose')).text, /\[-\]replica-lease failed/)
    assert.equal((await third().request('GET', '/livez')).status, 200)
    await eventuallySlow('the others go on', async () => (await inCluster(first(), 'GET', '/hello')).status === 200)
    wire.mend()
    await eventuallySlow('the replica is back', async () => (await third().request('GET', '/readyz')).status === 200)
    // What happened meanwhile is known there.
    await eventuallySlow(
      'the token has ended',
      async () => (await third().request('GET', '/v3/me', { token })).status === 401,
    )
    await eventuallySlow('the cluster answers', async () => (await inCluster(third(), 'GET', '/hello')).status === 200)
  })

  it('are no longer used as soon as they stop', async () => {
    await second().end('SIGTERM')
    await eventuallySlow('the others go on', async () => {
      const { status } = await inCluster(first(), 'GET', '/hello')
      return status === 200
    })
    const metrics = await first().request('GET', '/metrics', { token: administrator })
    assert.match(metrics.text, /hyperkube_server_replicas\{state="alive"\} 2/)
  })

  async function findLeader(): Promise<Replica> {
    const path = '/apis/coordination.k8s.io/v1/namespaces/hyperkube-management/leases/hyperkube-server'
    const { body } = await first().request('GET', `/k8s/clusters/local${path}`, { token: administrator })
    const id = body['spec'].holderIdentity as string
    return running().find(({ logged }) => new RegExp(`Joined the other replicas.*${id}`).test(logged)) as Replica
  }
})
