/** Tests requests of users and connections of the cluster builder through the tunnels of machines. */
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { connect } from 'node:net'
import { text } from 'node:stream/consumers'
import { after, before, describe, it } from 'node:test'

import { realClock, sleep } from '#lib/clock.ts'
import { connectWebSocket } from '#lib/http/websocket.ts'
import { secureRandom, uuid } from '#lib/random.ts'
import { encodeHead } from '#lib/tunnel/request-head.ts'
import { type Accept, type Tunnel, TUNNEL_PROTOCOL } from '#lib/tunnel/tunnel.ts'

import { eventually, type ManagementBed, newCredential, startManagementBed } from './bed.ts'
import { connected, importCluster } from './downstream.ts'
import { isConnected, type MachineClaim, machineNamed, machineToken, openTunnel } from './machine-bed.ts'

const ALL = ['etcd', 'controlplane', 'worker']

describe('tunnels of machines to the management server', () => {
  let bed: ManagementBed
  let cluster = ''
  const stop = new AbortController()

  before(async () => {
    bed = await startManagementBed()
    cluster = (await importCluster(bed, 'shop')).id
  })
  after(async () => {
    stop.abort()
    await bed[Symbol.asyncDispose]()
  })

  async function join(
    node: string,
    roles: MachineClaim['roles'] & object,
    accept?: Accept,
    id = cluster,
  ): Promise<Tunnel> {
    const token = await machineToken(bed, id, { roles: ALL })
    const tunnel = await openTunnel(bed, { mode: 'register', node, token, credential: newCredential(), roles }, accept)
    await eventually(`${node} is connected`, () => isConnected(machineNamed(bed, id, node)))
    return tunnel
  }

  /** Answers every request, and records the addresses of streams. */
  function server(body: string, asked: string[]): Accept {
    const answer = Buffer.concat([encodeHead({ status: 200, headers: [] }), Buffer.from(body)])
    return (_protocol, address) => {
      asked.push(address)
      return (stream) => stream.once('data', () => stream.end(answer))
    }
  }

  const ask = async (): Promise<{ status: number; text: string }> =>
    bed.request('GET', `/k8s/clusters/${cluster}/api/v1/namespaces/x/pods`, { token: bed.administrator })

  it('carry requests of users to control planes only, and to another one if the first disconnects', async () => {
    const asked: string[] = []
    const worker = await join('w-1', ['worker'], server('worker', asked))
    const etcd = await join('e-1', ['etcd'], server('etcd', asked))
    assert.equal((await ask()).status, 503)
    assert.deepEqual(asked, [])
    const first = await join('c-1', ['controlPlane'], server('first', []))
    assert.equal((await ask()).text, 'first')
    const second = await join('c-2', ['etcd', 'controlPlane'], server('second', []))
    await first.close()
    await eventually('the second serves', async () => (await ask()).text === 'second')
    await second.close()
    await eventually('nobody serves', async () => (await ask()).status === 503)
    assert.deepEqual(asked, [])
    for (const tunnel of [worker, etcd]) await tunnel.close()
  })

  it('carry requests of users while the agent of the cluster is connected but does not answer', async () => {
    const { id, token } = await importCluster(bed, 'frozen')
    const parameters = { uid: uuid(secureRandom), agentVersion: '0', credential: newCredential() }
    // It answers pings of the WebSocket, but nothing reads the tunnel.
    const frozen = await connectWebSocket({
      clock: realClock,
      url: `${bed.url.replace('https', 'wss')}/v3/connect/register`,
      protocols: [TUNNEL_PROTOCOL],
      headers: {
        'x-api-tunnel-token': token,
        'x-api-tunnel-params': Buffer.from(JSON.stringify(parameters)).toString('base64'),
      },
      tls: { ca: bed.ca },
    })
    await connected(bed, id)
    const plane = await join('f-1', ['controlPlane'], server('plane', []), id)
    await eventually('the plane serves', async () => {
      const asking = bed.request('GET', `/k8s/clusters/${id}/api/v1/pods`, { token: bed.administrator })
      const late = sleep(realClock, 1000).then(() => undefined)
      return (await Promise.race([asking, late]))?.text === 'plane'
    })
    await plane.close()
    frozen.destroy()
  })

  it('give the cluster builder a local port to the API server of a connected control plane', async () => {
    await using closing = new AsyncDisposableStack()
    const payload = (): never => {
      throw new Error('nothing is uploaded')
    }
    const ways = bed.running.machines.ways(cluster, { home: '/opt/x', payload }, stop.signal)
    const port = await ways.apiPort(['p-1', 'p-2', 'unknown'], closing)
    const visit = async (greeting: string): Promise<string> => {
      const socket = connect({ host: '127.0.0.1', port, allowHalfOpen: true })
      socket.on('error', () => undefined)
      socket.end(greeting)
      return text(socket).catch(() => '')
    }
    assert.equal(await visit('anybody?'), '')
    const echo: Accept = (_protocol, address) =>
      address === 'kube-apiserver-port' ? (stream) => stream.pipe(stream) : undefined
    const tunnel = await join('p-2', ['controlPlane'], echo)
    const long = 'x'.repeat(1 << 20)
    assert.deepEqual([await visit('hello'), (await visit(long)).length], ['hello', long.length])
    const held = connect({ host: '127.0.0.1', port })
    await once(held, 'connect')
    held.on('error', () => undefined)
    const ended = new Promise((resolve) => held.on('close', resolve))
    held.write('x')
    await once(held, 'data')
    await tunnel.close()
    await ended
    assert.equal(await visit('again'), '')
  })

  it('close the local port when the builder is done', async () => {
    const closing = new AsyncDisposableStack()
    const payload = (): never => {
      throw new Error('nothing is uploaded')
    }
    const ways = bed.running.machines.ways(cluster, { home: '/opt/x', payload }, stop.signal)
    const port = await ways.apiPort([], closing)
    await closing.disposeAsync()
    const socket = connect({ host: '127.0.0.1', port })
    const [error] = (await once(socket, 'error')) as [NodeJS.ErrnoException]
    assert.equal(error.code, 'ECONNREFUSED')
  })
})
