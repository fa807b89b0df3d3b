/** Tests gated controllers: storage version migration, StorageVersions, PodGroups and ResourcePoolStatusRequests. */
import assert from 'node:assert/strict'
import { afterEach, beforeEach, describe, it } from 'node:test'

import { CustomResourceDefinitions } from '#apis/apiextensions/v1.ts'
import { StorageVersions } from '#apis/apiserverinternal/v1alpha1.ts'
import { Leases } from '#apis/coordination/v1.ts'
import { ConfigMaps, Pods } from '#apis/core/v1.ts'
import type { Kind } from '#apis/kinds.ts'
import { ResourceClaims, ResourceSlices } from '#apis/resource/v1.ts'
import { ResourcePoolStatusRequests } from '#apis/resource/v1alpha3.ts'
import { PodGroups } from '#apis/scheduling/v1alpha2.ts'
import { StorageVersionMigrations } from '#apis/storagemigration/v1beta1.ts'
import type { ApiClient } from '#client/api-client.ts'
import { podGroupProtectionController } from '#controllers/devices/podgroup-protection.ts'
import { resourcePoolStatusRequestController } from '#controllers/devices/resourcepoolstatusrequest.ts'
import { storageVersionMigratorController } from '#controllers/objects/storage-version-migrator/controller.ts'
import { storageVersionGarbageCollectorController } from '#controllers/objects/storageversion-garbage-collector.ts'
import { type RunningControllers, startControllers } from '#kits/controllers/start.ts'
import { createVirtualClock, type VirtualClock } from '#lib/clock.ts'
import { isNotFound } from '#meta/status.ts'
import { type ControlPlane, startControlPlane } from '#testing/control-plane.ts'

import { definition } from '../custom-kit.ts'

const namespace = 'default'
const GATES = {
  StorageVersionMigrator: true,
  StorageVersionAPI: true,
  GenericWorkload: true,
  DRAResourcePoolStatus: true,
}
const VERSIONS = [
  'storagemigration.k8s.io/v1beta1',
  'internal.apiserver.k8s.io/v1alpha1',
  'scheduling.k8s.io/v1alpha2',
  'resource.k8s.io/v1alpha3',
]

let clock: VirtualClock
let plane: ControlPlane
let controllers: RunningControllers
let client: ApiClient

beforeEach(async () => {
  clock = createVirtualClock(Date.UTC(2026, 0, 1))
  const settings = {
    'disable-admission-plugins': ['ServiceAccount'],
    'feature-gates': new Map(Object.entries(GATES)),
    'runtime-config': new Map(VERSIONS.map((version) => [version, 'true'])),
  }
  plane = await startControlPlane({ clock, settings })
  const all = [
    podGroupProtectionController,
    resourcePoolStatusRequestController,
    storageVersionMigratorController,
    storageVersionGarbageCollectorController,
  ]
  controllers = startControllers(plane, clock, all, { gates: GATES })
  client = controllers.client
})

afterEach(async () => {
  await controllers.stop()
  await plane.stop()
})

describe('StorageVersionMigration controller', () => {
  const start = async (name: string, group: string, resource: string): Promise<void> => {
    await client.create(StorageVersionMigrations, { metadata: { name }, spec: { resource: { group, resource } } })
    await clock.advance(1000)
  }
  const said = async (name: string): Promise<string[]> => {
    const { status } = await client.get(StorageVersionMigrations, { name })
    return (status.conditions ?? []).map((one) => `${one.type} ${one.status} ${one.reason} ${one.message}`)
  }
  const DONE = [
    'Running False MigrationCompleted Migration completed',
    'Succeeded True StorageVersionMigrationSucceeded ',
  ]

  it('rewrites every object unchanged', async () => {
    for (let at = 0; at < 3; at++)
      await client.create(ConfigMaps, { metadata: { namespace, name: `c${at}` }, data: { a: 'b' } })
    const before = await client.list(ConfigMaps, { namespace })
    await start('m', '', 'configmaps')
    assert.deepEqual(await said('m'), DONE)
    const { status } = await client.get(StorageVersionMigrations, { name: 'm' })
    assert.ok(BigInt(status.resourceVersion ?? '0') >= BigInt(before.metadata.resourceVersion ?? '0'))
    assert.deepEqual((await client.list(ConfigMaps, { namespace })).items, before.items)
  })

  it('removes old versions from the status of the CustomResourceDefinition', async () => {
    const v1 = definition('Widget', { group: 'example.com', versions: [{ name: 'v1' }, { name: 'v2' }] })
    await client.create(CustomResourceDefinitions, v1)
    await clock.advance(2000)
    const widgets = { group: 'example.com', version: 'v1', kind: 'Widget', plural: 'widgets', namespaced: true } as Kind
    await client.create(widgets, { metadata: { namespace, name: 'w' } })
    const name = 'widgets.example.com'
    const versions = [
      { ...v1.spec.versions[0], storage: false },
      { ...v1.spec.versions[1], storage: true },
    ]
    await client.patch(CustomResourceDefinitions, { name }, { type: 'merge', value: { spec: { versions } } })
    await clock.advance(2000)
    assert.deepEqual((await client.get(CustomResourceDefinitions, { name })).status.storedVersions, ['v1', 'v2'])
    await start('m', 'example.com', 'widgets')
    assert.deepEqual(await said('m'), DONE)
    const { status } = await client.get(CustomResourceDefinitions, { name })
    assert.deepEqual(status.storedVersions, ['v2'])
    const condition = status.conditions?.find(({ type }) => type === 'StorageMigrating')
    assert.deepEqual(
      [condition?.status, condition?.reason, condition?.message],
      ['False', 'MigrationSucceeded', 'The migration has succeeded and the stored versions have been updated'],
    )
  })

  it('waits a minute for an unknown resource, then fails', async () => {
    await start('m', 'example.com', 'things')
    assert.deepEqual(await said('m'), ['Running True MigrationRunning The migration is running'])
    await clock.advance(66_000)
    assert.deepEqual(await said('m'), [
      'Running False MigrationCompleted Migration completed',
      'Failed True StorageVersionMigrationFailed resource does not exist in discovery',
    ])
  })

  it('fails for a resource that does not support updates', async () => {
    await start('m', '', 'bindings')
    assert.equal(
      (await said('m'))[1],
      'Failed True StorageVersionMigrationFailed resource "/v1, Resource=bindings" does not support discovery operations: [update patch list]',
    )
  })

  it('waits for an earlier migration of the same resource', async () => {
    await start('first', 'example.com', 'things')
    await start('second', 'example.com', 'things')
    assert.deepEqual(await said('second'), [])
    await client.delete(StorageVersionMigrations, { name: 'first' })
    await clock.advance(1000)
    assert.deepEqual(await said('second'), ['Running True MigrationRunning The migration is running'])
  })
})

describe('StorageVersion garbage collector', () => {
  const live = async (name: string): Promise<void> => {
    const labels = { 'apiserver.kubernetes.io/identity': 'kube-apiserver' }
    await client.create(Leases, { metadata: { namespace: 'kube-system', name, labels }, spec: {} })
  }
  const record = async (name: string, servers: Record<string, string>): Promise<void> => {
    const storageVersions = Object.entries(servers).map(([apiServerID, version]) => ({
      apiServerID,
      encodingVersion: version,
      decodableVersions: [version],
    }))
    const versions = [...new Set(Object.values(servers))]
    const common = versions.length === 1 ? { commonEncodingVersion: versions.join('') } : {}
    const { metadata } = await client.create(StorageVersions, { metadata: { name }, spec: {} })
    const conditions = [
      {
        type: 'AllEncodingVersionsEqual',
        status: 'False',
        reason: 'CommonEncodingVersionUnset',
        message: 'Common encoding version unset',
        lastTransitionTime: '2026-01-01T00:00:00Z',
      },
    ]
    await client.updateStatus(StorageVersions, {
      metadata,
      spec: {},
      status: { storageVersions, conditions, ...common },
    })
    await clock.advance(1000)
  }

  it('removes deleted servers, and sets the common version', async () => {
    await live('a')
    await live('b')
    await record('example.com.things', { a: 'v1', b: 'v2' })
    assert.equal((await client.get(StorageVersions, { name: 'example.com.things' })).status.storageVersions?.length, 2)
    await client.delete(Leases, { namespace: 'kube-system', name: 'b' })
    await clock.advance(1000)
    const { status } = await client.get(StorageVersions, { name: 'example.com.things' })
    assert.deepEqual(
      status.storageVersions?.map(({ apiServerID }) => apiServerID),
      ['a'],
    )
    assert.equal(status.commonEncodingVersion, 'v1')
    assert.deepEqual(
      status.conditions?.map(({ status: is, reason, message }) => [is, reason, message]),
      [['True', 'CommonEncodingVersionSet', 'Common encoding version set']],
    )
  })

  it('deletes a StorageVersion with its last server', async () => {
    await record('example.com.things', { nobody: 'v1' })
    await assert.rejects(client.get(StorageVersions, { name: 'example.com.things' }), isNotFound)
  })
})

describe('deleted PodGroup', () => {
  it('stays until its last pod has finished', async () => {
    const spec = { schedulingPolicy: { basic: {} } }
    const metadata = { namespace, name: 'g', finalizers: ['scheduling.k8s.io/podgroup-protection'] }
    await client.create(PodGroups, { metadata, spec: spec as never })
    const containers = [{ name: 'c', image: 'i', resources: {} }]
    await client.create(Pods, {
      metadata: { namespace, name: 'p' },
      spec: { containers, schedulingGroup: { podGroupName: 'g' } },
    })
    await client.delete(PodGroups, { namespace, name: 'g' })
    await clock.advance(1000)
    assert.ok((await client.get(PodGroups, { namespace, name: 'g' })).metadata.deletionTimestamp)
    await client.patch(
      Pods,
      { namespace, name: 'p', subresource: 'status' },
      { type: 'merge', value: { status: { phase: 'Failed' } } },
    )
    await clock.advance(1000)
    await assert.rejects(client.get(PodGroups, { namespace, name: 'g' }), isNotFound)
  })
})

describe('ResourcePoolStatusRequest controller', () => {
  const publish = async (pool: string, part: number, of: number, devices: number): Promise<void> => {
    const spec = {
      driver: 'd.example.com',
      nodeName: 'n1',
      pool: { name: pool, generation: 1, resourceSliceCount: of },
      devices: Array.from({ length: devices }, (_, at) => ({ name: `dev-${part}-${at}` })),
    }
    await client.create(ResourceSlices, { metadata: { name: `${pool}-${part}` }, spec })
  }
  const ask = async (name: string, more: object = {}): Promise<void> => {
    await client.create(ResourcePoolStatusRequests, { metadata: { name }, spec: { driver: 'd.example.com', ...more } })
    await clock.advance(1000)
  }
  const told = async (name: string): Promise<unknown[]> => {
    const { status } = await client.get(ResourcePoolStatusRequests, { name })
    const pools = status?.pools?.map((pool) => [
      pool.poolName,
      pool.totalDevices,
      pool.allocatedDevices,
      pool.availableDevices,
    ])
    const conditions = status?.conditions?.map((one) => `${one.type} ${one.status} ${one.reason} ${one.message}`)
    return [status?.poolCount, pools, conditions]
  }

  it('writes the status once, and deletes the request after an hour', async () => {
    await publish('a', 1, 1, 3)
    await publish('b', 1, 1, 2)
    const requests = [{ name: 'gpu', exactly: { deviceClassName: 'gpu', allocationMode: 'ExactCount', count: 1 } }]
    await client.create(ResourceClaims, { metadata: { namespace, name: 'c' }, spec: { devices: { requests } } })
    const results = [{ request: 'gpu', driver: 'd.example.com', pool: 'a', device: 'dev-1-0' }]
    const value = { metadata: { finalizers: ['resource.kubernetes.io/delete-protection'] } }
    await client.patch(ResourceClaims, { namespace, name: 'c' }, { type: 'merge', value })
    const status = { allocation: { devices: { results } } }
    await client.patch(
      ResourceClaims,
      { namespace, name: 'c', subresource: 'status' },
      { type: 'merge', value: { status } },
    )
    await ask('all')
    const pools = [
      ['a', 3, 1, 2],
      ['b', 2, 0, 2],
    ]
    assert.deepEqual(await told('all'), [2, pools, ['Complete True CalculationComplete Calculated status for 2 pools']])
    await ask('one', { poolName: 'b' })
    assert.deepEqual((await told('one')).slice(0, 2), [1, [['b', 2, 0, 2]]])
    await ask('first', { limit: 1 })
    assert.deepEqual((await told('first')).slice(0, 2), [2, [['a', 3, 1, 2]]])
    await clock.advance(3_500_000)
    await client.get(ResourcePoolStatusRequests, { name: 'all' })
    await clock.advance(800_000)
    await assert.rejects(client.get(ResourcePoolStatusRequests, { name: 'all' }), isNotFound)
  })

  it('waits for an incomplete resource pool', async () => {
    await publish('a', 1, 2, 3)
    await ask('all')
    assert.deepEqual(await told('all'), [undefined, undefined, undefined])
  })
})
