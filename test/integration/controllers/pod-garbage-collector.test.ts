/** Tests the pod garbage collector on a complete API server with a virtual clock. */
import assert from 'node:assert/strict'
import { afterEach, beforeEach, describe, it } from 'node:test'

import { Namespaces, Nodes, type Pod, Pods } from '#apis/core/v1.ts'
import type { ApiClient } from '#client/api-client.ts'
import { podGarbageCollectorController } from '#controllers/objects/pod-garbage-collector.ts'
import { controllerSettings } from '#controllers/settings.ts'
import { type RunningControllers, startControllers } from '#kits/controllers/start.ts'
import { createVirtualClock, type VirtualClock } from '#lib/clock.ts'
import { type ControlPlane, startControlPlane } from '#testing/control-plane.ts'

let clock: VirtualClock
let plane: ControlPlane
let controllers: RunningControllers
let client: ApiClient
const namespace = 'pods'

beforeEach(async () => {
  clock = createVirtualClock(Date.UTC(2026, 0, 1))
  plane = await startControlPlane({ clock, settings: { 'disable-admission-plugins': ['ServiceAccount'] } })
  const settings = controllerSettings({ 'terminated-pod-gc-threshold': 2 })
  controllers = startControllers(plane, clock, [podGarbageCollectorController], { settings })
  client = controllers.client
  await client.create(Namespaces, { metadata: { name: namespace } })
  await client.create(Nodes, { metadata: { name: 'n1' } })
})

afterEach(async () => {
  await controllers.stop()
  await plane.stop()
})

const run = async (name: string, status: object = { phase: 'Running' }, more: object = {}): Promise<void> => {
  const containers = [{ name: 'c', image: 'i', resources: {} }]
  await client.create(Pods, { metadata: { namespace, name, ...more }, spec: { containers, nodeName: 'n1' } })
  await client.patch(Pods, { namespace, name, subresource: 'status' }, { type: 'merge', value: { status } })
}

const names = async (): Promise<string[]> =>
  (await client.list(Pods, { namespace })).items.map(({ metadata }) => metadata.name ?? '')

describe('pod garbage collector', () => {
  it('deletes terminated pods above the limit: evicted ones first, then the oldest', async () => {
    for (const name of ['a', 'b', 'c']) {
      await run(name, { phase: 'Succeeded' })
      await clock.advance(1000)
    }
    await run('evicted', { phase: 'Failed', reason: 'Evicted' })
    await run('running')
    await clock.advance(41_000)
    assert.deepEqual(await names(), ['b', 'c', 'running'])
  })

  it('deletes pods whose node does not exist for a while, with a reason', async () => {
    await run('orphan', { phase: 'Running' }, { finalizers: ['example.com/hold'] })
    await clock.advance(21_000)
    await client.delete(Nodes, { name: 'n1' })
    await clock.advance(30_000)
    assert.equal((await client.get(Pods, { namespace, name: 'orphan' })).status.phase, 'Running')
    await clock.advance(60_000)
    const { status, metadata }: Pod = await client.get(Pods, { namespace, name: 'orphan' })
    const condition = status.conditions?.find(({ type }) => type === 'DisruptionTarget')
    assert.equal(status.phase, 'Failed')
    assert.equal(
      `${condition?.status} ${condition?.reason} ${condition?.message}`,
      'True DeletionByPodGC PodGC: node no longer exists',
    )
    assert.notEqual(metadata.deletionTimestamp, undefined)
  })

  it('deletes terminating pods of an out-of-service node', async () => {
    await run('stuck')
    await client.delete(Pods, { namespace, name: 'stuck' })
    await clock.advance(61_000)
    assert.deepEqual(await names(), ['stuck'])
    const taints = [{ key: 'node.kubernetes.io/out-of-service', effect: 'NoExecute' }]
    await client.patch(Nodes, { name: 'n1' }, { type: 'merge', value: { spec: { taints } } })
    await clock.advance(21_000)
    assert.deepEqual(await names(), [])
  })
})
