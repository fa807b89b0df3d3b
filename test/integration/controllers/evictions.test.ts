/**
 * Tests the controllers for taint eviction, bootstrap tokens and TTL annotations on a complete API server with a
 * virtual clock.
 */
import assert from 'node:assert/strict'
import { afterEach, beforeEach, describe, it } from 'node:test'

import { ConfigMaps, Events, Namespaces, Nodes, type Pod, Pods, Secrets, type Toleration } from '#apis/core/v1.ts'
import type { ApiClient } from '#client/api-client.ts'
import { bootstrapSignerController } from '#controllers/identity/bootstrap-signer.ts'
import { tokenCleanerController } from '#controllers/identity/token-cleaner.ts'
import { taintEvictionController } from '#controllers/nodes/taint-eviction.ts'
import { ttlController } from '#controllers/nodes/ttl.ts'
import { type RunningControllers, startControllers } from '#kits/controllers/start.ts'
import { createVirtualClock, type VirtualClock } from '#lib/clock.ts'
import { isNotFound } from '#meta/status.ts'
import { timeOf } from '#meta/time.ts'
import { type ControlPlane, startControlPlane } from '#testing/control-plane.ts'

let clock: VirtualClock
let plane: ControlPlane
let controllers: RunningControllers
let client: ApiClient
const namespace = 'node'

beforeEach(async () => {
  clock = createVirtualClock(Date.UTC(2026, 0, 1))
  plane = await startControlPlane({ clock, settings: { 'disable-admission-plugins': ['ServiceAccount'] } })
  controllers = startControllers(plane, clock, [
    taintEvictionController,
    tokenCleanerController,
    bootstrapSignerController,
    ttlController,
  ])
  client = controllers.client
  await client.create(Namespaces, { metadata: { name: namespace } })
  await client.create(Nodes, { metadata: { name: 'n1' } })
})

afterEach(async () => {
  await controllers.stop()
  await plane.stop()
})

const run = async (name: string, tolerations: Toleration[] = []): Promise<Pod> => {
  const containers = [{ name: 'c', image: 'i', resources: {} }]
  const metadata = { namespace, name, finalizers: ['example.com/hold'] }
  return client.create(Pods, { metadata, spec: { containers, nodeName: 'n1', tolerations } })
}

const taint = async (keys: string[]): Promise<void> => {
  const taints = keys.map((key) => ({ key, effect: 'NoExecute' }))
  await client.patch(Nodes, { name: 'n1' }, { type: 'merge', value: { spec: { taints } } })
  await clock.advance(1000)
}

const going = async (): Promise<string[]> => {
  const { items } = await client.list(Pods, { namespace })
  return items
    .filter(({ metadata }) => metadata.deletionTimestamp !== undefined)
    .map(({ metadata }) => metadata.name ?? '')
}

const told = async (): Promise<string[]> => {
  const { items } = await client.list(Events, { namespace })
  return items.map(
    ({ type, reason, message, reportingComponent }) => `${type} ${reason} ${reportingComponent} ${message}`,
  )
}

const toleration = (tolerationSeconds?: number): Toleration => ({
  key: 'gone',
  operator: 'Exists',
  effect: 'NoExecute',
  ...(tolerationSeconds !== undefined && { tolerationSeconds }),
})

describe('taint eviction controller', () => {
  it('evicts pods that do not tolerate the taint, with an event', async () => {
    await run('d')
    await run('stays', [toleration()])
    const value = { status: { conditions: [{ type: 'Ready', status: 'True' }] } }
    await client.patch(Pods, { namespace, name: 'd', subresource: 'status' }, { type: 'merge', value })
    await taint(['gone'])
    assert.deepEqual(await going(), ['d'])
    const { status } = await client.get(Pods, { namespace, name: 'd' })
    assert.deepEqual(
      status.conditions?.map(({ type }) => type),
      ['Ready', 'DisruptionTarget'],
    )
    const [, condition] = status.conditions ?? []
    assert.deepEqual(
      [condition?.status, condition?.reason, condition?.message, condition?.observedGeneration],
      ['True', 'DeletionByTaintManager', 'Taint manager: deleting due to NoExecute taint', 1],
    )
    assert.deepEqual(await told(), [
      'Normal TaintManagerEviction taint-eviction-controller Marking for deletion Pod node/d',
    ])
  })

  it('waits for tolerationSeconds, and cancels the eviction if the taint is removed', async () => {
    await run('b', [toleration(60)])
    await taint(['gone'])
    await clock.advance(50_000)
    await taint([])
    await clock.advance(60_000)
    assert.deepEqual(await going(), [])
    assert.deepEqual(await told(), [
      'Normal TaintManagerEviction taint-eviction-controller Cancelling deletion of Pod node/b',
    ])
    await taint(['gone'])
    await clock.advance(58_000)
    assert.deepEqual(await going(), [])
    await clock.advance(2000)
    assert.deepEqual(await going(), ['b'])
  })

  it('evicts at once if one of several taints is not tolerated', async () => {
    await run('b', [toleration(60)])
    await taint(['gone'])
    await clock.advance(1000)
    assert.deepEqual(await going(), [])
    await taint(['gone', 'other'])
    assert.deepEqual(await going(), ['b'])
    assert.deepEqual(await told(), [
      'Normal TaintManagerEviction taint-eviction-controller Cancelling deletion of Pod node/b',
      'Normal TaintManagerEviction taint-eviction-controller Marking for deletion Pod node/b',
    ])
  })
})

describe('bootstrap token controllers', () => {
  it('sign cluster-info, and delete expired tokens with their signature', async () => {
    const info = { namespace: 'kube-public', name: 'cluster-info' }
    await client.create(ConfigMaps, { metadata: info, data: { kubeconfig: 'text', 'jws-kubeconfig-old': 'x' } })
    const expiration = timeOf(clock.now() + 60_000)
    const where = { namespace: 'kube-system', name: 'bootstrap-token-abcdef' }
    const stringData = {
      'token-id': 'abcdef',
      'token-secret': '0123456789abcdef',
      'usage-bootstrap-signing': 'true',
      expiration,
    }
    await client.create(Secrets, { metadata: where, type: 'bootstrap.kubernetes.io/token', stringData })
    await clock.advance(59_000)
    const { data = {} } = await client.get(ConfigMaps, info)
    assert.deepEqual(Object.keys(data).toSorted(), ['jws-kubeconfig-abcdef', 'kubeconfig'])
    assert.match(data['jws-kubeconfig-abcdef'] ?? '', /^eyJhbGciOiJIUzI1NiIsImtpZCI6ImFiY2RlZiJ9\.\.[\w-]+$/)
    await clock.advance(2000)
    await assert.rejects(client.get(Secrets, where), isNotFound)
    assert.deepEqual((await client.get(ConfigMaps, info)).data, { kubeconfig: 'text' })
  })
})

describe('TTL controller', () => {
  it('adds the TTL annotation to nodes', async () => {
    await clock.advance(1000)
    const { metadata } = await client.get(Nodes, { name: 'n1' })
    assert.equal(metadata.annotations?.['node.alpha.kubernetes.io/ttl'], '0')
  })
})
