/** Tests the quota controller with admission, on a complete API server with a virtual clock. */
import assert from 'node:assert/strict'
import { afterEach, beforeEach, describe, it } from 'node:test'

import { ConfigMaps, Namespaces, Pods, ResourceQuotas } from '#apis/core/v1.ts'
import type { ApiClient } from '#client/api-client.ts'
import { resourceQuotaController } from '#controllers/objects/resourcequota.ts'
import { type RunningControllers, startControllers } from '#kits/controllers/start.ts'
import { createVirtualClock, type VirtualClock } from '#lib/clock.ts'
import { isForbidden } from '#meta/status.ts'
import { type ControlPlane, startControlPlane } from '#testing/control-plane.ts'

let clock: VirtualClock
let plane: ControlPlane
let controllers: RunningControllers
let client: ApiClient
const namespace = 'limited'

beforeEach(async () => {
  clock = createVirtualClock(Date.UTC(2026, 0, 1))
  plane = await startControlPlane({ clock, settings: { 'disable-admission-plugins': ['ServiceAccount'] } })
  controllers = startControllers(plane, clock, [resourceQuotaController])
  client = controllers.client
  await client.create(Namespaces, { metadata: { name: namespace } })
  await clock.advance(1000)
})

afterEach(async () => {
  await controllers.stop()
  await plane.stop()
})

const pod = async (name: string, requests: Record<string, string> = {}): Promise<void> => {
  const spec = { containers: [{ name: 'c', image: 'i', resources: { requests } }] }
  await client.create(Pods, { metadata: { namespace, name }, spec })
}

const limit = async (hard: Record<string, string>, more: object = {}): Promise<void> => {
  await client.create(ResourceQuotas, { metadata: { namespace, name: 'q' }, spec: { hard, ...more } })
  await clock.advance(1000)
}

const status = async (): Promise<unknown> => (await client.get(ResourceQuotas, { namespace, name: 'q' })).status

describe('resource quota controller', () => {
  it('counts existing objects of every limited kind', async () => {
    await pod('p', { cpu: '100m' })
    await client.create(ConfigMaps, { metadata: { namespace, name: 'c' } })
    const all = (await client.list(ConfigMaps, { namespace })).items.length
    const hard = { pods: '5', 'requests.cpu': '1', services: '2', configmaps: '9', 'count/deployments.apps': '1' }
    await limit(hard)
    assert.deepEqual(await status(), {
      hard,
      used: {
        configmaps: String(all),
        'count/deployments.apps': '0',
        pods: '1',
        'requests.cpu': '100m',
        services: '0',
      },
    })
  })

  it('counts quotas created at the same moment, including themselves and new resources', async () => {
    const hard = { resourcequotas: '9', 'count/deployments.apps': '1', secrets: '1' }
    const names = ['first', 'second', 'third']
    const make = (name: string): Promise<unknown> =>
      client.create(ResourceQuotas, { metadata: { namespace, name }, spec: { hard } })
    await Promise.all(names.map(make))
    await clock.advance(1000)
    for (const name of names) {
      const { status: is } = await client.get(ResourceQuotas, { namespace, name })
      assert.deepEqual(is?.used, { 'count/deployments.apps': '0', resourcequotas: '3', secrets: '0' }, name)
    }
  })

  it('decreases the usage after deletions and when pods finish', async () => {
    await limit({ pods: '2', configmaps: '50' })
    await pod('one')
    await pod('two')
    await assert.rejects(pod('three'), isForbidden)
    await client.delete(Pods, { namespace, name: 'one' }, { gracePeriodSeconds: 0 })
    await clock.advance(1000)
    await pod('three')
    await client.patch(
      Pods,
      { namespace, name: 'two', subresource: 'status' },
      { type: 'merge', value: { status: { phase: 'Succeeded' } } },
    )
    await clock.advance(1000)
    await pod('four')
    await client.create(ConfigMaps, { metadata: { namespace, name: 'c' } })
    const before = await client.get(ResourceQuotas, { namespace, name: 'q' })
    await client.delete(ConfigMaps, { namespace, name: 'c' })
    await clock.advance(1000)
    const after = await client.get(ResourceQuotas, { namespace, name: 'q' })
    const count = ({ status: is }: typeof before): number => Number(is?.used?.['configmaps'])
    assert.equal(count(before) - count(after), 1)
  })

  it('applies changed limits, and counts only objects within scopes', async () => {
    await pod('asks', { cpu: '1' })
    await pod('asks-nothing')
    await limit({ pods: '5' }, { scopes: ['BestEffort'] })
    assert.deepEqual(await status(), { hard: { pods: '5' }, used: { pods: '1' } })
    await client.patch(
      ResourceQuotas,
      { namespace, name: 'q' },
      { type: 'merge', value: { spec: { hard: { pods: '7' } } } },
    )
    await clock.advance(1000)
    assert.deepEqual(await status(), { hard: { pods: '7' }, used: { pods: '1' } })
  })

  it('reverts a foreign status every five minutes', async () => {
    await limit({ pods: '5' })
    await client.patch(
      ResourceQuotas,
      { namespace, name: 'q', subresource: 'status' },
      { type: 'merge', value: { status: { used: { pods: '4' } } } },
    )
    await clock.advance(301_000)
    assert.deepEqual(await status(), { hard: { pods: '5' }, used: { pods: '0' } })
  })
})
