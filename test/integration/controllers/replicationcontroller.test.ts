/** Tests the ReplicationController controller; the ReplicaSet tests cover the shared parts. */
import assert from 'node:assert/strict'
import { it } from 'node:test'

import { Events, Pods, ReplicationControllers } from '#apis/core/v1.ts'
import { replicationControllerController } from '#controllers/workloads/replicationcontroller.ts'
import { startControllers } from '#kits/controllers/start.ts'
import { createVirtualClock } from '#lib/clock.ts'
import { controllerOf } from '#meta/object.ts'
import { startControlPlane } from '#testing/control-plane.ts'

import { createFakeKubelet } from './fake-kubelet.ts'

const namespace = 'default'
const labels = { app: 'old' }

it('the ReplicationController controller maintains pods, adopts matching ones, and counts all except terminating ones', async () => {
  const clock = createVirtualClock(Date.UTC(2026, 0, 1))
  await using plane = await startControlPlane({ clock, settings: { 'disable-admission-plugins': ['ServiceAccount'] } })
  await using controllers = startControllers(plane, clock, [replicationControllerController, createFakeKubelet()])
  const { client } = controllers
  const spec = { containers: [{ name: 'c', image: 'img:1', resources: {} }] }
  await client.create(Pods, { metadata: { namespace, name: 'orphan', labels }, spec })
  await client.create(ReplicationControllers, {
    metadata: { namespace, name: 'old' },
    spec: { replicas: 3, selector: labels, template: { metadata: { labels }, spec } },
  })
  await clock.advance(1000)
  const { items } = await client.list(Pods, { namespace })
  assert.deepEqual(
    items.map((pod) => `${controllerOf(pod)?.apiVersion} ${controllerOf(pod)?.kind}`),
    Array(3).fill('v1 ReplicationController'),
  )
  const { status } = await client.get(ReplicationControllers, { namespace, name: 'old' })
  assert.deepEqual(status, {
    replicas: 3,
    fullyLabeledReplicas: 3,
    readyReplicas: 3,
    availableReplicas: 3,
    observedGeneration: 1,
  })
  const events = (await client.list(Events, { namespace })).items
  assert.deepEqual(new Set(events.map(({ source }) => source?.component)), new Set(['replication-controller']))
})
