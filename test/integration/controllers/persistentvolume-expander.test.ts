/** Tests claims that request more storage, on a complete API server with a virtual clock. */
import assert from 'node:assert/strict'
import { describe, it } from 'node:test'

import {
  Events,
  Namespaces,
  PersistentVolumeClaims,
  PersistentVolumes,
  type PersistentVolumeSpec,
} from '#apis/core/v1.ts'
import { StorageClasses } from '#apis/storage/v1.ts'
import { persistentVolumeBinderController } from '#controllers/volumes/persistentvolume-binder/controller.ts'
import { persistentVolumeExpanderController } from '#controllers/volumes/persistentvolume-expander.ts'
import { startControllers } from '#kits/controllers/start.ts'
import { createVirtualClock } from '#lib/clock.ts'
import { startControlPlane } from '#testing/control-plane.ts'

const namespace = 'storage'

/** The events about a claim that grows, and its annotation. */
async function grown(source: PersistentVolumeSpec): Promise<[events: string[], resizer: string | undefined]> {
  const clock = createVirtualClock(Date.UTC(2026, 0, 1))
  await using plane = await startControlPlane({ clock, settings: { 'disable-admission-plugins': ['ServiceAccount'] } })
  await using controllers = startControllers(plane, clock, [
    persistentVolumeBinderController,
    persistentVolumeExpanderController,
  ])
  const { client } = controllers
  await client.create(Namespaces, { metadata: { name: namespace } })
  await client.create(StorageClasses, { metadata: { name: 'x' }, provisioner: 'x.example', allowVolumeExpansion: true })
  const shared = { accessModes: ['ReadWriteOnce'], storageClassName: 'x' }
  await client.create(PersistentVolumes, {
    metadata: { name: 'v' },
    spec: { ...shared, capacity: { storage: '1Gi' }, persistentVolumeReclaimPolicy: 'Retain', ...source },
  })
  await clock.advance(100)
  const where = { namespace, name: 'c' }
  const spec = { ...shared, resources: { requests: { storage: '1Gi' } } }
  await client.create(PersistentVolumeClaims, { metadata: where, spec })
  await clock.advance(100)
  const value = { spec: { resources: { requests: { storage: '2Gi' } } } }
  await client.patch(PersistentVolumeClaims, where, { type: 'merge', value })
  await clock.advance(100)
  const { items } = await client.list(Events, { namespace })
  const { metadata, status } = await client.get(PersistentVolumeClaims, where)
  assert.deepEqual(status.capacity, { storage: '1Gi' })
  const told = items.map(
    ({ type, reason, reportingComponent, message, count }) =>
      `${type} ${reason} (${reportingComponent}) ${message} x${count}`,
  )
  return [told, metadata.annotations?.['volume.kubernetes.io/storage-resizer']]
}

describe('growing PersistentVolumeClaim', () => {
  it('waits for an external resizer', async () => {
    assert.deepEqual(await grown({ csi: { driver: 'x.example', volumeHandle: 'h' } }), [
      ['Normal ExternalExpanding (volume_expand) waiting for an external controller to expand this PVC x1'],
      undefined,
    ])
  })

  it('gets an annotation for its CSI driver if it has an in-tree volume', async () => {
    const message = 'CSI migration enabled for kubernetes.io/gce-pd; waiting for external resizer to expand the pvc'
    assert.deepEqual(await grown({ gcePersistentDisk: { pdName: 'd' } }), [
      [`Normal ExternalExpanding (volume_expand) ${message} x1`],
      'pd.csi.storage.gke.io',
    ])
  })
})
