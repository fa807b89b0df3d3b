/** Tests the ReplicaSet controller on a complete API server with a virtual clock. */
import assert from 'node:assert/strict'
import { afterEach, beforeEach, describe, it } from 'node:test'

import { type ReplicaSet, ReplicaSets } from '#apis/apps/v1.ts'
import { Events, type Pod, Pods } from '#apis/core/v1.ts'
import type { ApiClient } from '#client/api-client.ts'
import { replicaSetController } from '#controllers/workloads/replicaset.ts'
import { type RunningControllers, startControllers } from '#kits/controllers/start.ts'
import { createVirtualClock, type VirtualClock } from '#lib/clock.ts'
import { controllerOf } from '#meta/object.ts'
import { timeOf } from '#meta/time.ts'
import { type ControlPlane, startControlPlane } from '#testing/control-plane.ts'

const namespace = 'default'
const labels = { app: 'web' }

let clock: VirtualClock
let plane: ControlPlane
let controllers: RunningControllers
let client: ApiClient

beforeEach(async () => {
  clock = createVirtualClock(Date.UTC(2026, 0, 1))
  plane = await startControlPlane({ clock, settings: { 'disable-admission-plugins': ['ServiceAccount'] } })
  controllers = startControllers(plane, clock, [replicaSetController])
  client = controllers.client
})

afterEach(async () => {
  await controllers.stop()
  await plane.stop()
})

async function create(replicas: number, minReadySeconds = 0): Promise<ReplicaSet> {
  const template = { metadata: { labels }, spec: { containers: [{ name: 'c', image: 'img:1', resources: {} }] } }
  const made = await client.create(ReplicaSets, {
    metadata: { namespace, name: 'web' },
    spec: { replicas, minReadySeconds, selector: { matchLabels: labels }, template },
  })
  await clock.advance(100)
  return made
}

async function scale(replicas: number): Promise<void> {
  await client.patch(ReplicaSets, { namespace, name: 'web' }, { type: 'merge', value: { spec: { replicas } } })
  await clock.advance(100)
}

const pods = async (): Promise<Pod[]> => (await client.list(Pods, { namespace, labelSelector: 'app=web' })).items
const status = async (): Promise<ReplicaSet['status']> =>
  (await client.get(ReplicaSets, { namespace, name: 'web' })).status
const events = async (): Promise<string[]> =>
  (await client.list(Events, { namespace })).items.map(({ reason, message }) => `${reason}: ${message}`)

async function makeReady(pod: Pod): Promise<void> {
  const { name = '' } = pod.metadata
  await client.patch(
    Pods,
    { namespace, name, subresource: 'status' },
    {
      type: 'merge',
      value: {
        status: {
          phase: 'Running',
          conditions: [{ type: 'Ready', status: 'True', lastTransitionTime: timeOf(clock.now()) }],
        },
      },
    },
  )
}

describe('ReplicaSet controller', () => {
  it('creates missing pods once, with events', async () => {
    await create(12)
    const made = await pods()
    assert.equal(made.length, 12)
    assert.ok(
      made.every((pod) => controllerOf(pod)?.name === 'web' && /^web-[a-z0-9]{5}$/.test(pod.metadata.name ?? '')),
    )
    const { observedGeneration, replicas, fullyLabeledReplicas, readyReplicas } = await status()
    assert.deepEqual([observedGeneration, replicas, fullyLabeledReplicas, readyReplicas], [1, 12, 12, undefined])
    assert.ok((await events()).includes(`SuccessfulCreate: Created pod: ${made[0]?.metadata.name}`))
  })

  it('replaces deleted pods, and deletes surplus ones, not ready ones first', async () => {
    await create(3)
    const [first, second] = await pods()
    assert.ok(first !== undefined && second !== undefined)
    await makeReady(first)
    await client.delete(Pods, { namespace, name: second.metadata.name ?? '' }, { gracePeriodSeconds: 0 })
    await clock.advance(100)
    assert.equal((await pods()).length, 3)
    await scale(1)
    assert.deepEqual(
      (await pods()).map(({ metadata }) => metadata.name),
      [first.metadata.name],
    )
  })

  it('adopts matching orphans, and releases pods that no longer match', async () => {
    await client.create(Pods, {
      metadata: { namespace, name: 'orphan', labels },
      spec: { containers: [{ name: 'c', image: 'img:1', resources: {} }] },
    })
    await create(2)
    const adopted = await client.get(Pods, { namespace, name: 'orphan' })
    assert.equal(controllerOf(adopted)?.name, 'web')
    assert.equal((await pods()).length, 2)
    await client.patch(
      Pods,
      { namespace, name: 'orphan' },
      { type: 'merge', value: { metadata: { labels: { app: 'x' } } } },
    )
    await clock.advance(100)
    assert.equal(controllerOf(await client.get(Pods, { namespace, name: 'orphan' })), undefined)
    assert.equal((await pods()).length, 2)
  })

  it('counts a pod as available after minReadySeconds, although no event occurs', async () => {
    await create(1, 30)
    const [pod] = await pods()
    assert.ok(pod !== undefined)
    await makeReady(pod)
    await clock.advance(1000)
    assert.deepEqual([(await status()).readyReplicas, (await status()).availableReplicas], [1, undefined])
    await clock.advance(30_000)
    assert.equal((await status()).availableReplicas, 1)
  })

  it('reports a failure to create pods, retries, and clears it on success', async () => {
    const quota = { metadata: { namespace, name: 'none' }, spec: { hard: { pods: '1' } } }
    await plane.request('POST', `/api/v1/namespaces/${namespace}/resourcequotas`, quota)
    await plane.request(
      'PATCH',
      `/api/v1/namespaces/${namespace}/resourcequotas/none/status`,
      '{"status":{"hard":{"pods":"1"},"used":{"pods":"1"}}}',
      { 'content-type': 'application/merge-patch+json' },
    )
    await create(1)
    const [condition] = (await status()).conditions ?? []
    assert.equal(condition?.type, 'ReplicaFailure')
    assert.match(condition?.message ?? '', /^pods "web-[a-z0-9]{5}" is forbidden: exceeded quota: none/)
    await plane.request('DELETE', `/api/v1/namespaces/${namespace}/resourcequotas/none`)
    await clock.advance(60_000)
    assert.equal((await pods()).length, 1)
    assert.equal((await status()).conditions, undefined)
  })
})
