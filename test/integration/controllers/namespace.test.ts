/** Tests the namespace controller on a complete API server with a virtual clock. */
import assert from 'node:assert/strict'
import { afterEach, beforeEach, describe, it } from 'node:test'

import { Deployments } from '#apis/apps/v1.ts'
import { ConfigMaps, Namespaces, Pods } from '#apis/core/v1.ts'
import { NetworkPolicies } from '#apis/networking/v1.ts'
import type { ApiClient } from '#client/api-client.ts'
import { namespaceController } from '#controllers/objects/namespace.ts'
import { type RunningControllers, startControllers } from '#kits/controllers/start.ts'
import { createVirtualClock, type VirtualClock } from '#lib/clock.ts'
import { isNotFound } from '#meta/status.ts'
import { type ControlPlane, startControlPlane } from '#testing/control-plane.ts'

let clock: VirtualClock
let plane: ControlPlane
let controllers: RunningControllers
let client: ApiClient
const namespace = 'doomed'

beforeEach(async () => {
  clock = createVirtualClock(Date.UTC(2026, 0, 1))
  plane = await startControlPlane({ clock, settings: { 'disable-admission-plugins': ['ServiceAccount'] } })
  controllers = startControllers(plane, clock, [namespaceController])
  client = controllers.client
  await client.create(Namespaces, { metadata: { name: namespace } })
  const template = {
    metadata: { labels: { a: 'b' } },
    spec: { containers: [{ name: 'c', image: 'img', resources: {} }] },
  }
  await client.create(Pods, { metadata: { namespace, name: 'p' }, spec: template.spec })
  await client.create(Deployments, {
    metadata: { namespace, name: 'd' },
    spec: { selector: { matchLabels: { a: 'b' } }, strategy: {}, template },
  })
})

afterEach(async () => {
  await controllers.stop()
  await plane.stop()
})

const conditions = async (): Promise<string[]> => {
  const { status } = await client.get(Namespaces, { name: namespace })
  return (status.conditions ?? []).map(({ status: is, reason, message }) => `${is} ${reason} ${message}`)
}

describe('namespace controller', () => {
  it('deletes objects of every kind after five seconds, then the namespace', async () => {
    await client.create(ConfigMaps, { metadata: { namespace, name: 'c' } })
    await client.delete(Namespaces, { name: namespace })
    await clock.advance(4000)
    assert.equal((await client.list(ConfigMaps, { namespace })).items.length > 0, true)
    await clock.advance(60_000)
    await assert.rejects(client.get(Namespaces, { name: namespace }), isNotFound)
    assert.deepEqual((await client.list(Deployments, { namespace })).items, [])
  })

  it('CVE-2024-7598: keeps network policies until the last pod is gone', async () => {
    const spec = { podSelector: {}, policyTypes: ['Ingress'] }
    await client.create(NetworkPolicies, { metadata: { namespace, name: 'deny' }, spec })
    const hold = { type: 'merge', value: { metadata: { finalizers: ['example.com/runs'] } } } as const
    await client.patch(Pods, { namespace, name: 'p' }, hold)
    await client.delete(Namespaces, { name: namespace })
    await clock.advance(120_000)
    assert.equal((await client.list(Pods, { namespace })).items.length, 1)
    assert.equal((await client.list(NetworkPolicies, { namespace })).items.length, 1)
    const release = { type: 'merge', value: { metadata: { finalizers: null } } } as const
    await client.patch(Pods, { namespace, name: 'p' }, release)
    await clock.advance(60_000)
    await assert.rejects(client.get(Namespaces, { name: namespace }), isNotFound)
    assert.deepEqual((await client.list(NetworkPolicies, { namespace })).items, [])
  })

  it('reports remaining objects and finalizers in the status', async () => {
    await client.create(ConfigMaps, { metadata: { namespace, name: 'held', finalizers: ['example.com/hold'] } })
    await client.delete(Namespaces, { name: namespace })
    await clock.advance(10_000)
    assert.deepEqual(await conditions(), [
      'False ResourcesDiscovered All resources successfully discovered',
      'False ParsedGroupVersions All legacy kube types successfully parsed',
      'False ContentDeleted All content successfully deleted, may be waiting on finalization',
      'True SomeResourcesRemain Some resources are remaining: configmaps. has 1 resource instances',
      'True SomeFinalizersRemain Some content in the namespace has finalizers remaining: example.com/hold in 1 resource instances',
    ])
    const release = { type: 'merge', value: { metadata: { finalizers: null } } } as const
    await client.patch(ConfigMaps, { namespace, name: 'held' }, release)
    await clock.advance(30_000)
    await assert.rejects(client.get(Namespaces, { name: namespace }), isNotFound)
  })
})
