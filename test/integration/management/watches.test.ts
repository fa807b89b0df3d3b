/** Tests the watches of clusters and machines over WebSockets: changes, versions and rights. */
import assert from 'node:assert/strict'
import { after, before, describe, it } from 'node:test'

import { realClock } from '#lib/clock.ts'
import { connectWebSocket, type WebSocketConnection, WebSocketError } from '#lib/http/websocket.ts'
import { Clusters } from '#management/kinds/cluster.ts'

import { eventually, type ManagementBed, startManagementBed } from './bed.ts'
import { importCluster } from './downstream.ts'
import { claimStatus, machineToken } from './machine-bed.ts'

interface Event {
  readonly type: string
  readonly object: { readonly metadata?: { readonly name: string }; readonly code?: number; readonly isOwner?: boolean }
}

describe('watches of the management server', () => {
  let bed: ManagementBed
  let user: { readonly name: string; readonly token: string }
  before(async () => {
    bed = await startManagementBed()
    user = await bed.createUser('reader')
  })
  after(() => bed[Symbol.asyncDispose]())

  async function version(path: string, token: string): Promise<string> {
    const { status, body } = await bed.request('GET', path, { token })
    assert.equal(status, 200)
    return body['metadata'].resourceVersion as string
  }

  function open(path: string, from: string, token: string): Promise<WebSocketConnection> {
    return connectWebSocket({
      clock: realClock,
      url: `${bed.url.replace('https', 'wss')}${path}?watch=1&resourceVersion=${encodeURIComponent(from)}`,
      headers: { authorization: `Bearer ${token}` },
      tls: { ca: bed.ca },
    })
  }

  /** Collects events until the connection ends. */
  function collect(connection: WebSocketConnection): Event[] {
    const events: Event[] = []
    const read = async (): Promise<void> => {
      for await (const { data } of connection) events.push(JSON.parse(data.toString()) as Event)
    }
    void read().catch(() => undefined)
    return events
  }

  const names = (events: readonly Event[]): readonly string[] =>
    events.map(({ type, object }) => `${type} ${object.metadata?.name}`)

  it('send changes since the list, and deletions', async () => {
    const token = bed.administrator
    const from = await version('/v3/clusters', token)
    const before = await importCluster(bed, 'before')
    const connection = await open('/v3/clusters', from, token)
    const events = collect(connection)
    await eventually('the missed change arrives', () => names(events).includes(`MODIFIED ${before.id}`))
    assert.ok(events.every(({ object }) => object.isOwner === true))
    await bed.request('DELETE', `/v3/clusters/${before.id}`, { token })
    await eventually('the deletion arrives', () => names(events).includes(`DELETED ${before.id}`))
    await connection.close()
  })

  it('send nothing when nothing has changed, and 410 for a version before a deletion or of other rights', async () => {
    const token = bed.administrator
    const old = await version('/v3/clusters', token)
    const { id } = await importCluster(bed, 'gone')
    await bed.request('DELETE', `/v3/clusters/${id}`, { token })
    for (const from of [old, '', '12', await version('/v3/clusters', user.token)]) {
      const connection = await open('/v3/clusters', from, token)
      const events = collect(connection)
      await connection.closed
      assert.deepEqual(
        events.map(({ type, object }) => [type, object.code]),
        [['ERROR', 410]],
      )
    }
  })

  it('show users their clusters only, and end when their rights change', async () => {
    const [own, foreign] = [await importCluster(bed, 'own'), await importCluster(bed, 'foreign')]
    const body = { role: 'cluster-read-only', user: user.name }
    await bed.request('POST', `/v3/clusters/${own.id}/members`, { token: bed.administrator, body })
    const connection = await open('/v3/clusters', await version('/v3/clusters', user.token), user.token)
    const events = collect(connection)
    for (const { id } of [foreign, own])
      await bed.running.objects.change(Clusters, id, (now) => ({ ...now, spec: { ...now.spec, description: 'x' } }))
    await eventually('the change arrives', () => events.length > 0)
    assert.deepEqual(
      events.map(({ object }) => [object.metadata?.name, object.isOwner]),
      [[own.id, false]],
    )
    const { body: members } = await bed.request('GET', `/v3/clusters/${own.id}/members`, { token: bed.administrator })
    const member = (members['items'] as { metadata: { name: string }; spec: { user?: string } }[]).find(
      ({ spec }) => spec.user === user.name,
    )
    const path = `/v3/clusters/${own.id}/members/${member?.metadata.name}`
    assert.equal((await bed.request('DELETE', path, { token: bed.administrator })).status, 200)
    await connection.closed
  })

  it('send the machines of one cluster to its members only', async () => {
    const token = bed.administrator
    const { id } = await importCluster(bed, 'machines')
    const path = `/v3/clusters/${id}/machines`
    const connection = await open(path, await version(path, token), token)
    const events = collect(connection)
    const credential = 'c'.repeat(40)
    const machine = { mode: 'register', node: 'n-1', credential, token: await machineToken(bed, id) } as const
    assert.equal(await claimStatus(bed, machine), 101)
    await eventually('the machine arrives', () => events.length > 0)
    assert.ok(!JSON.stringify(events).includes('credentialHash'))
    await connection.close()
    await assert.rejects(open(path, '', user.token), (error) => error instanceof WebSocketError && error.status === 404)
  })

  it('need a WebSocket', async () => {
    const { status } = await bed.request('GET', '/v3/clusters?watch=1', { token: bed.administrator })
    assert.equal(status, 400)
  })
})
