/** Tests the garbage collector on a complete API server with a virtual clock. */
import assert from 'node:assert/strict'
import { afterEach, beforeEach, describe, it } from 'node:test'

import { CustomResourceDefinitions } from '#apis/apiextensions/v1.ts'
import { type ConfigMap, ConfigMaps, Events, Namespaces, PersistentVolumes } from '#apis/core/v1.ts'
import type { Kind } from '#apis/kinds.ts'
import type { ApiClient } from '#client/api-client.ts'
import { discover, KindMap } from '#client/discovery.ts'
import { garbageCollectorController } from '#controllers/objects/garbage-collector/controller.ts'
import { type RunningControllers, startControllers } from '#kits/controllers/start.ts'
import { createVirtualClock, type VirtualClock } from '#lib/clock.ts'
import { apiVersionOf } from '#meta/kind.ts'
import type { KubeObject, OwnerReference } from '#meta/object.ts'
import { isNotFound } from '#meta/status.ts'
import { type ControlPlane, startControlPlane } from '#testing/control-plane.ts'

let clock: VirtualClock
let plane: ControlPlane
let controllers: RunningControllers
let client: ApiClient
const namespace = 'gc'

beforeEach(async () => {
  clock = createVirtualClock(Date.UTC(2026, 0, 1))
  plane = await startControlPlane({ clock })
  controllers = startControllers(plane, clock, [garbageCollectorController])
  client = controllers.client
  await client.create(Namespaces, { metadata: { name: namespace } })
  await clock.advance(1000)
})

afterEach(async () => {
  await controllers.stop()
  await plane.stop()
})

const referenceTo = (kind: Kind, owner: KubeObject, more: Partial<OwnerReference> = {}): OwnerReference => ({
  apiVersion: apiVersionOf(kind),
  kind: kind.kind,
  name: owner.metadata.name ?? '',
  uid: owner.metadata.uid ?? '',
  ...more,
})

const make = (name: string, ownerReferences: OwnerReference[] = [], more: object = {}): Promise<ConfigMap> =>
  client.create(ConfigMaps, { metadata: { namespace, name, ownerReferences, ...more } })

const owned = async (name: string, owners: ConfigMap[], more: Partial<OwnerReference> = {}): Promise<ConfigMap> =>
  make(
    name,
    owners.map((owner) => referenceTo(ConfigMaps, owner, more)),
  )

const names = async (): Promise<string[]> => {
  const { items } = await client.list(ConfigMaps, { namespace })
  return items.map(({ metadata }) => metadata.name ?? '').filter((name) => name !== 'kube-root-ca.crt')
}

describe('garbage collector', () => {
  it('deletes dependents transitively after their owner is gone', async () => {
    const owner = await make('owner')
    const child = await owned('child', [owner])
    await owned('grandchild', [child])
    await make('stranger')
    await clock.advance(1000)
    await client.delete(ConfigMaps, { namespace, name: 'owner' }, { propagationPolicy: 'Background' })
    await clock.advance(2000)
    assert.deepEqual(await names(), ['stranger'])
  })

  it('keeps an object with another owner, and removes the reference to a missing owner', async () => {
    const [one, other] = [await make('one'), await make('other')]
    await owned('child', [one, other])
    await client.delete(ConfigMaps, { namespace, name: 'one' })
    await clock.advance(2000)
    const { metadata } = await client.get(ConfigMaps, { namespace, name: 'child' })
    assert.deepEqual(metadata.ownerReferences, [referenceTo(ConfigMaps, other)])
  })

  it('deletes the owner last in foreground deletion, after its blocking dependents', async () => {
    const owner = await make('owner')
    const child = await owned('child', [owner], { blockOwnerDeletion: true })
    await make('held', [referenceTo(ConfigMaps, child, { blockOwnerDeletion: true })], {
      finalizers: ['example.com/x'],
    })
    await make('loose', [referenceTo(ConfigMaps, owner)], { finalizers: ['example.com/x'] })
    await clock.advance(1000)
    await client.delete(ConfigMaps, { namespace, name: 'owner' }, { propagationPolicy: 'Foreground' })
    await clock.advance(2000)
    assert.deepEqual(await names(), ['child', 'held', 'loose', 'owner'])
    const { metadata } = await client.get(ConfigMaps, { namespace, name: 'child' })
    assert.deepEqual(metadata.finalizers, ['foregroundDeletion'])
    const release = { type: 'merge', value: { metadata: { finalizers: null } } } as const
    await client.patch(ConfigMaps, { namespace, name: 'held' }, release)
    await clock.advance(2000)
    assert.deepEqual(await names(), ['loose'])
  })

  it('resolves an owner cycle in foreground deletion', async () => {
    const one = await make('one')
    const other = await owned('other', [one], { blockOwnerDeletion: true })
    const value = { metadata: { ownerReferences: [referenceTo(ConfigMaps, other, { blockOwnerDeletion: true })] } }
    await client.patch(ConfigMaps, { namespace, name: 'one' }, { type: 'merge', value })
    await clock.advance(1000)
    await client.delete(ConfigMaps, { namespace, name: 'one' }, { propagationPolicy: 'Foreground' })
    await clock.advance(10_000)
    assert.deepEqual(await names(), [])
  })

  it('keeps dependents with propagation policy Orphan', async () => {
    const owner = await make('owner')
    await owned('child', [owner])
    await clock.advance(1000)
    await client.delete(ConfigMaps, { namespace, name: 'owner' }, { propagationPolicy: 'Orphan' })
    await clock.advance(2000)
    assert.deepEqual(await names(), ['child'])
    const { metadata } = await client.get(ConfigMaps, { namespace, name: 'child' })
    assert.equal(metadata.ownerReferences, undefined)
  })

  it('deletes objects whose owner never existed, or has another UID or name', async () => {
    const owner = await make('owner')
    await make('absent', [
      { apiVersion: 'v1', kind: 'Secret', name: 'nobody', uid: '00000000-0000-0000-0000-000000000001' },
    ])
    await make('replaced', [referenceTo(ConfigMaps, owner, { uid: '00000000-0000-0000-0000-000000000002' })])
    await make('renamed', [referenceTo(ConfigMaps, owner, { name: 'other' })])
    await owned('child', [owner])
    await clock.advance(3000)
    assert.deepEqual(await names(), ['child', 'owner'])
  })

  it('keeps objects whose owner has an unknown kind', async () => {
    await make('child', [
      { apiVersion: 'example.com/v1', kind: 'Widget', name: 'w', uid: '00000000-0000-0000-0000-000000000003' },
    ])
    await clock.advance(120_000)
    assert.deepEqual(await names(), ['child'])
  })

  it('deletes objects whose owner is in another namespace, with an event', async () => {
    const elsewhere = await client.create(ConfigMaps, { metadata: { namespace: 'default', name: 'owner' } })
    await clock.advance(1000)
    const child = await owned('child', [elsewhere])
    await clock.advance(3000)
    assert.deepEqual(await names(), [])
    const { items } = await client.list(Events, { namespace })
    const { uid } = elsewhere.metadata
    assert.deepEqual(
      items.map(({ type, reason, message, reportingComponent, involvedObject }) => [
        `${type} ${reason} ${reportingComponent} ${message}`,
        involvedObject.uid,
      ]),
      [
        [
          `Warning OwnerRefInvalidNamespace garbage-collector-controller ownerRef [v1/ConfigMap, namespace: gc, name: owner, uid: ${uid}] does not exist in namespace "gc"`,
          child.metadata.uid,
        ],
      ],
    )
  })

  it('keeps cluster-scoped objects with a namespaced owner', async () => {
    const owner = await make('owner')
    await clock.advance(1000)
    await client.create(PersistentVolumes, {
      metadata: { name: 'pv', ownerReferences: [referenceTo(ConfigMaps, owner)] },
      spec: { capacity: { storage: '1Gi' }, accessModes: ['ReadWriteOnce'], hostPath: { path: '/x' } },
    })
    await clock.advance(60_000)
    await client.delete(ConfigMaps, { namespace, name: 'owner' })
    await clock.advance(60_000)
    assert.equal((await client.get(PersistentVolumes, { name: 'pv' })).metadata.name, 'pv')
    const { items } = await client.list(Events, { namespace: 'default' })
    const said = items.find(({ reason }) => reason === 'OwnerRefInvalidNamespace')?.message
    const { uid } = owner.metadata
    assert.equal(said, `ownerRef [v1/ConfigMap, namespace: , name: owner, uid: ${uid}] does not exist in namespace ""`)
  })

  it('supports custom resources as owners and dependents', async () => {
    const schema = { openAPIV3Schema: { type: 'object', 'x-kubernetes-preserve-unknown-fields': true } }
    await client.create(CustomResourceDefinitions, {
      metadata: { name: 'widgets.example.com' },
      spec: {
        group: 'example.com',
        scope: 'Namespaced',
        names: { plural: 'widgets', kind: 'Widget', singular: 'widget', listKind: 'WidgetList' },
        versions: [{ name: 'v1', served: true, storage: true, schema }],
      },
    })
    await clock.advance(1000)
    const widgets = new KindMap((await discover(client)).kinds).ofKind({ group: 'example.com', kind: 'Widget' })
    assert.ok(widgets !== undefined)
    const widget = await client.create(widgets, { metadata: { namespace, name: 'w' } })
    await make('child', [referenceTo(widgets, widget)])
    const owner = await make('owner')
    const owners = [referenceTo(widgets, widget), referenceTo(ConfigMaps, owner)]
    await client.create(widgets, { metadata: { namespace, name: 'two', ownerReferences: owners } })
    await clock.advance(40_000)
    assert.deepEqual(await names(), ['child', 'owner'])
    await client.delete(widgets, { namespace, name: 'w' })
    await clock.advance(3000)
    assert.deepEqual(await names(), ['owner'])
    const two = await client.get(widgets, { namespace, name: 'two' })
    assert.deepEqual(two.metadata.ownerReferences, [referenceTo(ConfigMaps, owner)])
    await client.delete(ConfigMaps, { namespace, name: 'owner' })
    await clock.advance(3000)
    await assert.rejects(client.get(widgets, { namespace, name: 'two' }), isNotFound)
  })
})
