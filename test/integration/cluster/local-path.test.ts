/** Tests the default StorageClass on a complete API server with a virtual clock. */
import assert from 'node:assert/strict'
import { afterEach, beforeEach, describe, it } from 'node:test'

import { Events, Namespaces, PersistentVolumeClaims, PersistentVolumes } from '#apis/core/v1.ts'
import { StorageClasses } from '#apis/storage/v1.ts'
import type { ApiClient } from '#client/api-client.ts'
import { LOCAL_PATH_CLASS, localPathProvisioner } from '#cluster/local-path.ts'
import { persistentVolumeBinderController } from '#controllers/volumes/persistentvolume-binder/controller.ts'
import { type RunningControllers, startControllers } from '#kits/controllers/start.ts'
import { createVirtualClock, type VirtualClock } from '#lib/clock.ts'
import { isNotFound } from '#meta/status.ts'
import { type ControlPlane, startControlPlane } from '#testing/control-plane.ts'

const namespace = 'storage'
let clock: VirtualClock
let plane: ControlPlane
let controllers: RunningControllers
let client: ApiClient
let removed: string[]

beforeEach(async () => {
  clock = createVirtualClock(Date.UTC(2026, 0, 1))
  plane = await startControlPlane({ clock, settings: { 'disable-admission-plugins': ['ServiceAccount'] } })
  removed = []
  controllers = startControllers(plane, clock, [persistentVolumeBinderController, localPathProvisioner('/volumes')], {
    folders: { make: () => Promise.resolve(), remove: (path) => Promise.resolve(void removed.push(path)) },
  })
  client = controllers.client
  await client.create(Namespaces, { metadata: { name: namespace } })
  await client.create(StorageClasses, LOCAL_PATH_CLASS)
})
afterEach(async () => {
  await controllers.stop()
  await plane.stop()
})

/** A claim that the scheduler has found a node for. */
async function claim(name: string, accessModes: string[]): Promise<string> {
  const annotations = { 'volume.kubernetes.io/selected-node': 'n1' }
  const spec = { accessModes, resources: { requests: { storage: '2Gi' } } }
  const made = await client.create(PersistentVolumeClaims, {
    metadata: { namespace, name, annotations },
    spec,
    status: {},
  })
  await clock.advance(5000)
  return made.metadata.uid ?? ''
}

async function messages(reason: string): Promise<readonly string[]> {
  const { items } = await client.list(Events, { namespace })
  return items.filter((event) => event.reason === reason).map(({ message = '' }) => message)
}

const isGone = (name: string): Promise<boolean> => client.get(PersistentVolumes, { name }).then(() => false, isNotFound)

describe('local-path provisioner', () => {
  it('creates a directory for a claim on its node, and deletes it with the claim', async () => {
    const uid = await claim('data', ['ReadWriteOnce'])
    const volume = await client.get(PersistentVolumes, { name: `pvc-${uid}` })
    assert.equal(volume.spec.hostPath?.path, `/volumes/pvc-${uid}_storage_data`)
    assert.equal(volume.spec.storageClassName, 'local-path')
    assert.deepEqual(volume.spec.capacity, { storage: '2Gi' })
    const [term] = volume.spec.nodeAffinity?.required?.nodeSelectorTerms ?? []
    assert.deepEqual(term?.matchExpressions?.[0]?.values, ['n1'])
    const bound = await client.get(PersistentVolumeClaims, { namespace, name: 'data' })
    assert.deepEqual([bound.status?.phase, bound.spec.volumeName], ['Bound', volume.metadata.name])
    assert.deepEqual(await messages('ProvisioningSucceeded'), [`Successfully provisioned volume pvc-${uid}`])

    const metadata = { ...bound.metadata, finalizers: [] }
    await client.update(PersistentVolumeClaims, { ...bound, metadata })
    await client.delete(PersistentVolumeClaims, { namespace, name: 'data' })
    await clock.advance(5000)
    assert.deepEqual(removed, [`/volumes/pvc-${uid}_storage_data`])
    const rest = await client.get(PersistentVolumes, { name: `pvc-${uid}` })
    await client.update(PersistentVolumes, { ...rest, metadata: { ...rest.metadata, finalizers: [] } })
    assert.equal(await isGone(`pvc-${uid}`), true)
  })

  it('reports that ReadWriteMany is not supported', async () => {
    const uid = await claim('shared', ['ReadWriteMany'])
    assert.equal(await isGone(`pvc-${uid}`), true)
    assert.deepEqual(
      [...new Set(await messages('ProvisioningFailed'))],
      [
        'failed to provision volume with StorageClass "local-path": NodePath only supports ReadWriteOnce and ReadWriteOncePod (1.22+) access modes',
      ],
    )
  })

  it('deletes no foreign directory, whatever path a volume has', async () => {
    for (const [at, path] of ['/etc', '/volumes/a/b', '/volumes'].entries()) {
      const name = `evil-${at}`
      const annotations = { 'pv.kubernetes.io/provisioned-by': 'rancher.io/local-path' }
      const claimRef = { namespace, name: 'gone', uid: 'gone' }
      const made = await client.create(PersistentVolumes, {
        metadata: { name, annotations },
        spec: {
          accessModes: ['ReadWriteOnce'],
          capacity: { storage: '1Gi' },
          hostPath: { path },
          persistentVolumeReclaimPolicy: 'Delete',
          claimRef,
        },
        status: {},
      })
      assert.equal(made.metadata.name, name, path)
    }
    await clock.advance(10_000)
    assert.deepEqual(removed, [])
    const { items } = await client.list(PersistentVolumes)
    const left = items.filter(({ metadata }) => metadata.deletionTimestamp === undefined)
    assert.deepEqual(left, [], 'it did look at them, and took them for its own')
  })
})
