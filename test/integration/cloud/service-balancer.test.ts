/** Tests Services of type LoadBalancer on a complete API server with a virtual clock: their addresses over time. */
import assert from 'node:assert/strict'
import { afterEach, beforeEach, test } from 'node:test'

import { Events, Nodes, type Service, Services } from '#apis/core/v1.ts'
import { EndpointSlices } from '#apis/discovery/v1.ts'
import type { ApiClient } from '#client/api-client.ts'
import { serviceBalancer } from '#cluster/service-balancer.ts'
import { type RunningControllers, startControllers } from '#kits/controllers/start.ts'
import { createVirtualClock, type VirtualClock } from '#lib/clock.ts'
import { createLog } from '#lib/log/log.ts'
import { isNotFound } from '#meta/status.ts'
import { type ControlPlane, startControlPlane } from '#testing/control-plane.ts'

let clock: VirtualClock
let plane: ControlPlane
let controllers: RunningControllers
let client: ApiClient

beforeEach(async () => {
  clock = createVirtualClock(Date.UTC(2026, 0, 1))
  plane = await startControlPlane({ clock })
  const log = createLog({ clock, stream: { write: (_text: string, done: () => void) => done() } }).logger
  controllers = startControllers(plane, clock, [serviceBalancer(() => [10_250])], { log })
  client = controllers.client
  await addNode('a', '192.168.7.1')
  await addNode('b', '192.168.7.2')
})

afterEach(async () => {
  await controllers.stop()
  await plane.stop()
})

async function addNode(name: string, address: string): Promise<void> {
  const node = await client.create(Nodes, { metadata: { name }, spec: {} })
  const addresses = [{ type: 'InternalIP', address }]
  await client.updateStatus(Nodes, { ...node, status: { ...node.status, addresses } })
  await clock.advance(1000)
}

async function add(name: string, spec: object = {}): Promise<void> {
  const ports = [{ port: 80 }]
  const whole = { type: 'LoadBalancer', ports, ...spec }
  await client.create(Services, {
    metadata: { name, namespace: 'default' },
    spec: whole,
    status: {},
  } as unknown as Service)
  await clock.advance(1000)
}

async function change(name: string, value: object): Promise<void> {
  await client.patch(Services, { namespace: 'default', name }, { type: 'merge', value })
  await clock.advance(1000)
}

const addressesOf = async (name: string): Promise<string[]> => {
  const { status } = await client.get(Services, { namespace: 'default', name })
  return (status?.loadBalancer?.ingress ?? []).map(({ ip = '' }) => ip)
}

const reasonsOf = async (name: string): Promise<string[]> => {
  const { items } = await client.list(Events)
  return items.filter(({ involvedObject }) => involvedObject.name === name).map(({ reason = '' }) => reason)
}

test('a LoadBalancer Service has the addresses of all eligible nodes until its type changes', async () => {
  await add('web')
  assert.deepEqual(await addressesOf('web'), ['192.168.7.1', '192.168.7.2'])
  assert.deepEqual(await reasonsOf('web'), ['EnsuringLoadBalancer', 'EnsuredLoadBalancer'])
  await addNode('c', '192.168.7.3')
  assert.deepEqual(await addressesOf('web'), ['192.168.7.1', '192.168.7.2', '192.168.7.3'])
  const labels = { 'node.kubernetes.io/exclude-from-external-load-balancers': 'true' }
  await client.patch(Nodes, { name: 'a' }, { type: 'merge', value: { metadata: { labels } } })
  await clock.advance(1000)
  assert.deepEqual(await addressesOf('web'), ['192.168.7.2', '192.168.7.3'])
  await change('web', { spec: { type: 'ClusterIP' } })
  assert.deepEqual(await addressesOf('web'), [])
  const { metadata } = await client.get(Services, { namespace: 'default', name: 'web' })
  assert.equal(metadata.finalizers, undefined)
})

test('a deleted LoadBalancer Service is removed after its cleanup', async () => {
  await add('web')
  await client.delete(Services, { namespace: 'default', name: 'web' })
  await clock.advance(1000)
  await assert.rejects(client.get(Services, { namespace: 'default', name: 'web' }), isNotFound)
  assert.ok((await reasonsOf('web')).includes('DeletedLoadBalancer'))
})

test('a LoadBalancer Service with a loadBalancerClass is ignored', async () => {
  await add('other', { loadBalancerClass: 'example.com/mine' })
  assert.deepEqual(await addressesOf('other'), [])
  assert.deepEqual(await reasonsOf('other'), [])
})

test('a LoadBalancer Service with policy Local has only nodes with an endpoint', async () => {
  await add('web', { externalTrafficPolicy: 'Local' })
  assert.deepEqual(await addressesOf('web'), [])
  await client.create(EndpointSlices, {
    metadata: { name: 'web-1', namespace: 'default', labels: { 'kubernetes.io/service-name': 'web' } },
    addressType: 'IPv4',
    endpoints: [{ addresses: ['10.1.2.3'], nodeName: 'b', conditions: { ready: true } }],
    ports: [],
  })
  await clock.advance(1000)
  assert.deepEqual(await addressesOf('web'), ['192.168.7.2'])
})

test('a load balancer port belongs to the oldest Service, then to the next one, and node ports are reserved', async () => {
  await add('first')
  await add('second')
  assert.deepEqual(await addressesOf('second'), [])
  assert.ok((await reasonsOf('second')).includes('SyncLoadBalancerFailed'))
  await add('other', { ports: [{ port: 80, protocol: 'UDP' }] })
  assert.equal((await addressesOf('other')).length, 2)
  await client.delete(Services, { namespace: 'default', name: 'first' })
  await clock.advance(1000)
  assert.equal((await addressesOf('second')).length, 2)
  await add('kubelet', { ports: [{ port: 10_250 }] })
  assert.deepEqual(await addressesOf('kubelet'), [])
})
