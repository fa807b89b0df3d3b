/**
 * Tests the controllers for storage protection and ephemeral volume claims, on a complete API server with a virtual
 * clock.
 */
import assert from 'node:assert/strict'
import { afterEach, beforeEach, describe, it } from 'node:test'

import {
  Events,
  Namespaces,
  PersistentVolumeClaims,
  PersistentVolumes,
  type Pod,
  Pods,
  type Volume,
} from '#apis/core/v1.ts'
import type { Kind } from '#apis/kinds.ts'
import { VolumeAttributesClasses } from '#apis/storage/v1.ts'
import type { ApiClient } from '#client/api-client.ts'
import { ephemeralVolumeController } from '#controllers/volumes/ephemeral-volume.ts'
import {
  claimProtectionController,
  volumeAttributesClassProtectionController,
  volumeProtectionController,
} from '#controllers/volumes/volume-protection.ts'
import { type RunningControllers, startControllers } from '#kits/controllers/start.ts'
import { createVirtualClock, type VirtualClock } from '#lib/clock.ts'
import { isNotFound } from '#meta/status.ts'
import { type ControlPlane, startControlPlane } from '#testing/control-plane.ts'

let clock: VirtualClock
let plane: ControlPlane
let controllers: RunningControllers
let client: ApiClient
const namespace = 'storage'

beforeEach(async () => {
  clock = createVirtualClock(Date.UTC(2026, 0, 1))
  plane = await startControlPlane({
    clock,
    settings: { 'disable-admission-plugins': ['ServiceAccount', 'StorageObjectInUseProtection'] },
  })
  controllers = startControllers(plane, clock, [
    claimProtectionController,
    volumeProtectionController,
    volumeAttributesClassProtectionController,
    ephemeralVolumeController,
  ])
  client = controllers.client
  await client.create(Namespaces, { metadata: { name: namespace } })
})

afterEach(async () => {
  await controllers.stop()
  await plane.stop()
})

const claimSpec = { accessModes: ['ReadWriteOnce'], resources: { requests: { storage: '1Gi' } } }

const claim = async (name: string, more: object = {}): Promise<void> => {
  await client.create(PersistentVolumeClaims, { metadata: { namespace, name }, spec: { ...claimSpec, ...more } })
  await clock.advance(100)
}

const pod = (name: string, volume: Omit<Volume, 'name'>, nodeName = ''): Promise<Pod> => {
  const containers = [{ name: 'c', image: 'i', resources: {} }]
  const spec = { containers, volumes: [{ name: 'v', ...volume }], ...(nodeName !== '' && { nodeName }) }
  return client.create(Pods, { metadata: { namespace, name }, spec })
}

const remove = async (kind: Kind, name: string): Promise<void> => {
  await client.delete(kind, { namespace, name }, { gracePeriodSeconds: 0 })
  await clock.advance(100)
}

/** The finalizers of what is there. */
const held = async (kind: Kind, name: string): Promise<string> => {
  try {
    const { metadata } = await client.get(kind, { namespace, name })
    return (metadata.finalizers ?? []).join()
  } catch (error) {
    assert.ok(isNotFound(error))
    return 'gone'
  }
}

describe('protection of PersistentVolumeClaims', () => {
  it('keeps the claim of a scheduled pod until the pod is gone', async () => {
    await claim('data')
    assert.equal(await held(PersistentVolumeClaims, 'data'), 'kubernetes.io/pvc-protection')
    await pod('user', { persistentVolumeClaim: { claimName: 'data' } }, 'n1')
    await remove(PersistentVolumeClaims, 'data')
    await clock.advance(60_000)
    assert.equal(await held(PersistentVolumeClaims, 'data'), 'kubernetes.io/pvc-protection')
    await remove(Pods, 'user')
    assert.equal(await held(PersistentVolumeClaims, 'data'), 'gone')
  })

  it('releases the claim of an unscheduled pod at once', async () => {
    await claim('data')
    await pod('waiting', { persistentVolumeClaim: { claimName: 'data' } })
    await remove(PersistentVolumeClaims, 'data')
    assert.equal(await held(PersistentVolumeClaims, 'data'), 'gone')
  })

  it('releases claims that are deleted together if no pod uses them', async () => {
    for (let number = 0; number < 5; number++) await claim(`c${number}`)
    await pod('user', { persistentVolumeClaim: { claimName: 'c3' } }, 'n1')
    await client.deleteCollection(PersistentVolumeClaims, { namespace })
    await clock.advance(1000)
    const { items } = await client.list(PersistentVolumeClaims, { namespace })
    assert.deepEqual(
      items.map(({ metadata }) => metadata.name),
      ['c3'],
    )
    await remove(Pods, 'user')
    assert.equal(await held(PersistentVolumeClaims, 'c3'), 'gone')
  })
})

describe('protection of PersistentVolumes', () => {
  it('keeps a volume while it is bound', async () => {
    const spec = {
      capacity: { storage: '1Gi' },
      accessModes: ['ReadWriteOnce'],
      hostPath: { path: '/a' },
      persistentVolumeReclaimPolicy: 'Retain',
    }
    for (const name of ['bound', 'free']) await client.create(PersistentVolumes, { metadata: { name }, spec })
    const where = { name: 'bound', subresource: 'status' }
    await client.patch(PersistentVolumes, where, { type: 'merge', value: { status: { phase: 'Bound' } } })
    await clock.advance(100)
    for (const name of ['bound', 'free']) {
      assert.equal(await held(PersistentVolumes, name), 'kubernetes.io/pv-protection')
      await remove(PersistentVolumes, name)
    }
    assert.equal(await held(PersistentVolumes, 'bound'), 'kubernetes.io/pv-protection')
    assert.equal(await held(PersistentVolumes, 'free'), 'gone')
    await client.patch(PersistentVolumes, where, { type: 'merge', value: { status: { phase: 'Released' } } })
    await clock.advance(100)
    assert.equal(await held(PersistentVolumes, 'bound'), 'gone')
  })
})

describe('protection of VolumeAttributesClasses', () => {
  it('keeps a class while a claim requests, has or tries it', async () => {
    for (const name of ['gold', 'free']) {
      await client.create(VolumeAttributesClasses, {
        metadata: { name },
        driverName: 'd.example',
        parameters: { a: 'b' },
      })
    }
    await claim('data', { volumeAttributesClassName: 'gold' })
    for (const name of ['gold', 'free']) {
      assert.equal(await held(VolumeAttributesClasses, name), 'kubernetes.io/vac-protection')
      await remove(VolumeAttributesClasses, name)
    }
    assert.equal(await held(VolumeAttributesClasses, 'free'), 'gone')
    assert.equal(await held(VolumeAttributesClasses, 'gold'), 'kubernetes.io/vac-protection')
    await remove(PersistentVolumeClaims, 'data')
    assert.equal(await held(VolumeAttributesClasses, 'gold'), 'gone')
  })
})

describe('ephemeral volume controller', () => {
  const metadata = { labels: { app: 'x' }, annotations: { note: 'y' } }
  const ephemeral = { volumeClaimTemplate: { metadata, spec: claimSpec } }

  it('creates a claim that the pod owns, again after a deletion', async () => {
    const { metadata: owner } = await pod('p', { ephemeral })
    await clock.advance(100)
    const made = await client.get(PersistentVolumeClaims, { namespace, name: 'p-v' })
    assert.deepEqual(made.metadata.ownerReferences, [
      { apiVersion: 'v1', kind: 'Pod', name: 'p', uid: owner.uid, controller: true, blockOwnerDeletion: true },
    ])
    assert.deepEqual([made.metadata.labels, made.metadata.annotations], [metadata.labels, metadata.annotations])
    await remove(PersistentVolumeClaims, 'p-v')
    const again = await client.get(PersistentVolumeClaims, { namespace, name: 'p-v' })
    assert.notEqual(again.metadata.uid, made.metadata.uid)
  })

  it('does not use a foreign claim of the same name, and reports it', async () => {
    await claim('p-v')
    await pod('p', { ephemeral })
    await clock.advance(100)
    const { items } = await client.list(Events, { namespace })
    const [told] = items
    assert.deepEqual(
      [told?.type, told?.reason, told?.reportingComponent, told?.message],
      [
        'Warning',
        'FailedBinding',
        'ephemeral_volume',
        'ephemeral volume v: PVC storage/p-v was not created for pod storage/p (pod is not owner)',
      ],
    )
    await remove(PersistentVolumeClaims, 'p-v')
    await clock.advance(1000)
    const { metadata: made } = await client.get(PersistentVolumeClaims, { namespace, name: 'p-v' })
    assert.equal(made.ownerReferences?.[0]?.name, 'p')
  })
})
