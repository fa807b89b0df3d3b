/** Tests claims and volumes on a complete API server with a virtual clock, compared with upstream's behaviour. */
import assert from 'node:assert/strict'
import { afterEach, beforeEach, describe, it } from 'node:test'

import {
  Events,
  Namespaces,
  type PersistentVolume,
  type PersistentVolumeClaim,
  PersistentVolumeClaims,
  type PersistentVolumeClaimSpec,
  PersistentVolumes,
  type PersistentVolumeSpec,
  Pods,
} from '#apis/core/v1.ts'
import { StorageClasses } from '#apis/storage/v1.ts'
import type { ApiClient } from '#client/api-client.ts'
import { controllerSettings } from '#controllers/settings.ts'
import { persistentVolumeBinderController } from '#controllers/volumes/persistentvolume-binder/controller.ts'
import { claimProtectionController, volumeProtectionController } from '#controllers/volumes/volume-protection.ts'
import { type RunningControllers, startControllers } from '#kits/controllers/start.ts'
import { createVirtualClock, type VirtualClock } from '#lib/clock.ts'
import type { ObjectMeta } from '#meta/object.ts'
import { isNotFound } from '#meta/status.ts'
import { type ControlPlane, startControlPlane } from '#testing/control-plane.ts'

let clock: VirtualClock
let plane: ControlPlane
let controllers: RunningControllers
let client: ApiClient
let folders: string[]
const namespace = 'storage'

beforeEach(async () => {
  clock = createVirtualClock(Date.UTC(2026, 0, 1))
  plane = await startControlPlane({ clock, settings: { 'disable-admission-plugins': ['ServiceAccount'] } })
  folders = []
  controllers = startControllers(
    plane,
    clock,
    [persistentVolumeBinderController, claimProtectionController, volumeProtectionController],
    {
      settings: controllerSettings({ 'enable-hostpath-provisioner': true }),
      folders: {
        make: (path) => Promise.resolve(void folders.push(path)),
        remove: (path) => Promise.resolve(void folders.push(`-${path}`)),
      },
    },
  )
  client = controllers.client
  await client.create(Namespaces, { metadata: { name: namespace } })
})

afterEach(async () => {
  await controllers.stop()
  await plane.stop()
})

type VolumeOptions = PersistentVolumeSpec & { readonly metadata?: ObjectMeta; readonly size?: string }

const volume = async (name: string, options: VolumeOptions = {}): Promise<void> => {
  const { metadata, size = '5Gi', ...more } = options
  const isElsewhere = more.nfs !== undefined || more.csi !== undefined
  const spec = {
    accessModes: ['ReadWriteOnce'],
    capacity: { storage: size },
    persistentVolumeReclaimPolicy: 'Retain',
    ...(!isElsewhere && { hostPath: { path: `/tmp/${name}` } }),
    ...more,
  }
  await client.create(PersistentVolumes, { metadata: { name, ...metadata }, spec })
  await clock.advance(100)
}

type ClaimOptions = Partial<PersistentVolumeClaimSpec> & { readonly metadata?: ObjectMeta; readonly size?: string }

const claim = async (name: string, options: ClaimOptions = {}): Promise<PersistentVolumeClaim> => {
  const { metadata, size = '1Gi', ...more } = options
  const spec = { accessModes: ['ReadWriteOnce'], resources: { requests: { storage: size } }, ...more }
  const made = await client.create(PersistentVolumeClaims, { metadata: { namespace, name, ...metadata }, spec })
  await clock.advance(100)
  return made
}

const storageClass = async (name: string, provisioner: string, more: object = {}): Promise<void> => {
  await client.create(StorageClasses, { metadata: { name }, provisioner, ...more })
  await clock.advance(100)
}

const readVolume = (name: string): Promise<PersistentVolume> => client.get(PersistentVolumes, { name })
const readClaim = (name: string): Promise<PersistentVolumeClaim> =>
  client.get(PersistentVolumeClaims, { namespace, name })

const phases = async (claimName: string, volumeName: string): Promise<(string | undefined)[]> => [
  (await readClaim(claimName)).status.phase,
  (await readVolume(volumeName)).status.phase,
]

const told = async (name: string): Promise<string[]> => {
  const { items } = await client.list(Events)
  return items
    .filter(({ involvedObject }) => involvedObject.name === name)
    .map(({ type, reason, message, reportingComponent }) => `${type} ${reason} (${reportingComponent}) ${message}`)
}

const said = (text: string): string => text.replace(' ', ' ').replace(/^(\w+ \w+)/, '$1 (persistentvolume-controller)')

const remove = async (name: string): Promise<void> => {
  await client.delete(PersistentVolumeClaims, { namespace, name })
  await clock.advance(1000)
}

const resync = (): Promise<void> => clock.advance(15_500)

describe('binding of PersistentVolumeClaims', () => {
  it('uses the smallest matching volume, and writes both objects like upstream', async () => {
    await volume('large', { size: '10Gi' })
    await volume('small', { size: '3Gi' })
    await volume('tiny', { size: '1Gi' })
    await claim('c', { size: '2Gi' })
    const bound = await readClaim('c')
    assert.equal(bound.spec.volumeName, 'small')
    assert.deepEqual(bound.metadata.annotations, {
      'pv.kubernetes.io/bind-completed': 'yes',
      'pv.kubernetes.io/bound-by-controller': 'yes',
    })
    assert.deepEqual(bound.status, { phase: 'Bound', accessModes: ['ReadWriteOnce'], capacity: { storage: '3Gi' } })
    const taken = await readVolume('small')
    assert.deepEqual(taken.metadata.annotations, { 'pv.kubernetes.io/bound-by-controller': 'yes' })
    const { resourceVersion, ...reference } = taken.spec.claimRef ?? {}
    assert.match(resourceVersion ?? '', /^\d+$/)
    const { uid } = bound.metadata
    assert.deepEqual(reference, { kind: 'PersistentVolumeClaim', namespace, name: 'c', uid, apiVersion: 'v1' })
    assert.equal(taken.status.phase, 'Bound')
    assert.match(taken.status.lastPhaseTransitionTime ?? '', /^2026-01-01T00:00:0/)
    assert.deepEqual(
      [(await readVolume('large')).status.phase, (await readVolume('tiny')).status.phase],
      ['Available', 'Available'],
    )
  })

  it('is delayed with an event until a volume exists and the next resync', async () => {
    await claim('c')
    const message = 'no persistent volumes available for this claim and no storage class is set'
    assert.deepEqual(await told('c'), [said(`Normal FailedBinding ${message}`)])
    await volume('v')
    assert.equal((await readClaim('c')).status.phase, 'Pending')
    await resync()
    assert.deepEqual(await phases('c', 'v'), ['Bound', 'Bound'])
  })

  it('respects a volume reserved by claimRef and one named by volumeName', async () => {
    await volume('small', { size: '1Gi' })
    await volume('kept', { claimRef: { namespace, name: 'c' } })
    await volume('named')
    await claim('c')
    await claim('d', { volumeName: 'named' })
    assert.equal((await readClaim('c')).spec.volumeName, 'kept')
    assert.equal((await readVolume('kept')).metadata.annotations, undefined)
    assert.deepEqual(await phases('d', 'named'), ['Bound', 'Bound'])
    assert.deepEqual((await readClaim('d')).metadata.annotations, { 'pv.kubernetes.io/bind-completed': 'yes' })
  })

  it("refuses an unsuitable or taken volume with upstream's message", async () => {
    await volume('pvblk', { volumeMode: 'Block' })
    await volume('pvown')
    await claim('owner', { volumeName: 'pvown' })
    await claim('mode', { volumeName: 'pvblk' })
    await claim('late', { volumeName: 'pvown' })
    const mismatch = 'Cannot bind to requested volume "pvblk": incompatible volumeMode'
    assert.deepEqual(await told('mode'), [said(`Warning VolumeMismatch ${mismatch}`)])
    assert.deepEqual(await told('late'), [
      said('Warning FailedBinding volume "pvown" already bound to a different claim.'),
    ])
    assert.equal((await readClaim('late')).status.phase, 'Pending')
  })

  it('reports a reserved volume of another volumeMode in events of both objects', async () => {
    const { metadata } = await claim('c', { storageClassName: '' })
    const claimRef = { namespace, name: 'c', uid: metadata.uid ?? '' }
    await volume('v', { volumeMode: 'Block', claimRef })
    const end = 'due to incompatible volumeMode.'
    assert.deepEqual(await told('v'), [
      said(`Warning VolumeMismatch Cannot bind PersistentVolume to requested PersistentVolumeClaim "c" ${end}`),
    ])
    assert.ok(
      (await told('c')).includes(
        said(`Warning VolumeMismatch Cannot bind PersistentVolume "v" to requested PersistentVolumeClaim ${end}`),
      ),
    )
  })

  it('sets a claim to Lost if its volume is deleted', async () => {
    await volume('v')
    await claim('c')
    await client.patch(PersistentVolumes, { name: 'v' }, { type: 'merge', value: { metadata: { finalizers: null } } })
    await client.delete(PersistentVolumes, { name: 'v' })
    await clock.advance(1000)
    const { items } = await client.list(PersistentVolumes)
    if (items.length > 0) {
      await client.patch(PersistentVolumes, { name: 'v' }, { type: 'merge', value: { metadata: { finalizers: null } } })
      await clock.advance(1000)
    }
    assert.deepEqual((await readClaim('c')).status, { phase: 'Lost' })
    assert.deepEqual(await told('c'), [
      said('Warning ClaimLost Bound claim has lost its PersistentVolume. Data on the volume is lost!'),
    ])
  })

  it('sets the default StorageClass of a claim without one, once that exists', async () => {
    await claim('c')
    const annotations = { 'storageclass.kubernetes.io/is-default-class': 'true' }
    await client.create(StorageClasses, { metadata: { name: 'std', annotations }, provisioner: 'example.com/prov' })
    await resync()
    assert.equal((await readClaim('c')).spec.storageClassName, 'std')
  })
})

describe('provisioning of PersistentVolumeClaims', () => {
  it('leaves claims to an external provisioner', async () => {
    await storageClass('fast', 'example.com/prov')
    await claim('c', { storageClassName: 'fast' })
    const { metadata, status } = await readClaim('c')
    assert.deepEqual(metadata.annotations, {
      'volume.beta.kubernetes.io/storage-provisioner': 'example.com/prov',
      'volume.kubernetes.io/storage-provisioner': 'example.com/prov',
    })
    assert.equal(status.phase, 'Pending')
    assert.deepEqual(await told('c'), [
      said(
        "Normal ExternalProvisioning Waiting for a volume to be created either by the external provisioner 'example.com/prov' or manually by the system administrator. If volume creation is delayed, please verify that the provisioner is running and correctly registered.",
      ),
    ])
    const claimRef = { namespace, name: 'c', uid: metadata.uid ?? '' }
    const csi = { driver: 'example.com', volumeHandle: 'h' }
    await volume('made', { csi, claimRef, storageClassName: 'fast' })
    await clock.advance(1000)
    assert.deepEqual(await phases('c', 'made'), ['Bound', 'Bound'])
  })

  it('leaves claims of an in-tree plugin to its CSI driver', async () => {
    await storageClass('ebs', 'kubernetes.io/aws-ebs')
    await claim('c', { storageClassName: 'ebs' })
    await resync()
    assert.equal(
      (await readClaim('c')).metadata.annotations?.['volume.kubernetes.io/storage-provisioner'],
      'ebs.csi.aws.com',
    )
    await client.patch(
      PersistentVolumeClaims,
      { namespace, name: 'c' },
      {
        type: 'merge',
        value: { metadata: { annotations: { 'volume.kubernetes.io/storage-provisioner': 'kubernetes.io/aws-ebs' } } },
      },
    )
    await clock.advance(1000)
    assert.equal(
      (await readClaim('c')).metadata.annotations?.['volume.kubernetes.io/storage-provisioner'],
      'ebs.csi.aws.com',
    )
  })

  it('fails without the StorageClass or the provisioner', async () => {
    await claim('c', { storageClassName: 'missing' })
    assert.deepEqual(await told('c'), [
      said('Warning ProvisioningFailed storageclass.storage.k8s.io "missing" not found'),
    ])
    await storageClass('none', 'kubernetes.io/no-provisioner')
    await claim('d', { storageClassName: 'none' })
    assert.deepEqual(await told('d'), [
      said('Warning ProvisioningFailed no volume plugin matched name: kubernetes.io/no-provisioner'),
    ])
  })

  it('waits for the first consumer and its node', async () => {
    await storageClass('late', 'example.com/prov', { volumeBindingMode: 'WaitForFirstConsumer' })
    await claim('c', { storageClassName: 'late' })
    const first = said('Normal WaitForFirstConsumer waiting for first consumer to be created before binding')
    assert.deepEqual(await told('c'), [first])
    const containers = [{ name: 'c', image: 'i', resources: {} }]
    const volumes = [{ name: 'v', persistentVolumeClaim: { claimName: 'c' } }]
    await client.create(Pods, { metadata: { namespace, name: 'b' }, spec: { containers, volumes } })
    await resync()
    const one = said('Normal WaitForPodScheduled waiting for pod b to be scheduled')
    assert.deepEqual((await told('c')).slice(1), [one])
    await client.create(Pods, { metadata: { namespace, name: 'a' }, spec: { containers, volumes } })
    await resync()
    assert.deepEqual((await told('c')).slice(2), [
      said('Normal WaitForPodScheduled waiting for pods a,b to be scheduled'),
    ])
    const annotations = { 'volume.kubernetes.io/selected-node': 'n1' }
    await client.patch(
      PersistentVolumeClaims,
      { namespace, name: 'c' },
      { type: 'merge', value: { metadata: { annotations } } },
    )
    await clock.advance(1000)
    assert.match((await told('c')).at(-1) ?? '', /ExternalProvisioning/)
  })

  it('creates a directory, and deletes it with its claim', async () => {
    await storageClass('folder', 'kubernetes.io/host-path')
    const { metadata } = await claim('c', { storageClassName: 'folder' })
    const name = `pvc-${metadata.uid}`
    await clock.advance(1000)
    assert.deepEqual(await phases('c', name), ['Bound', 'Bound'])
    const made = await readVolume(name)
    assert.deepEqual(made.metadata.finalizers?.toSorted(), [
      'kubernetes.io/pv-controller',
      'kubernetes.io/pv-protection',
    ])
    assert.deepEqual(made.metadata.annotations, {
      'kubernetes.io/createdby': 'hostpath-dynamic-provisioner',
      'pv.kubernetes.io/bound-by-controller': 'yes',
      'pv.kubernetes.io/provisioned-by': 'kubernetes.io/host-path',
    })
    const path = made.spec.hostPath?.path ?? ''
    assert.match(path, /^\/tmp\/hostpath_pv\/[0-9a-f-]{36}$/)
    assert.ok(
      (await told('c')).includes(
        said(`Normal ProvisioningSucceeded Successfully provisioned volume ${name} using kubernetes.io/host-path`),
      ),
    )
    await remove('c')
    assert.deepEqual(folders, [path, `-${path}`])
    await assert.rejects(readVolume(name), isNotFound)
  })
})

describe('reclaiming of PersistentVolumes', () => {
  it('keeps a volume with policy Retain', async () => {
    await volume('v')
    await claim('c')
    await remove('c')
    await claim('d')
    await resync()
    assert.equal((await readVolume('v')).status.phase, 'Released')
    assert.equal((await readClaim('d')).status.phase, 'Pending')
  })

  it('leaves a volume of an external provisioner to its driver', async () => {
    await volume('v', { csi: { driver: 'd', volumeHandle: 'h' }, persistentVolumeReclaimPolicy: 'Delete' })
    await claim('c')
    await remove('c')
    assert.deepEqual([(await readVolume('v')).status.phase, await told('v')], ['Released', []])
  })

  it('reports volumes that it cannot delete', async () => {
    await volume('pvdel', { nfs: { server: 's', path: '/' }, persistentVolumeReclaimPolicy: 'Delete' })
    await claim('c')
    await remove('c')
    const why = 'error getting deleter volume plugin for volume "pvdel": no deletable volume plugin matched'
    const { phase, message } = (await readVolume('pvdel')).status
    assert.deepEqual([phase, message], ['Failed', why])
    assert.deepEqual(await told('pvdel'), [said(`Warning VolumeFailedDelete ${why}`)])
  })

  it('never deletes a directory outside of /tmp', async () => {
    await volume('home', { hostPath: { path: '/home/tmp/x' }, persistentVolumeReclaimPolicy: 'Delete' })
    await claim('c')
    await remove('c')
    const why = 'host_path deleter only supports /tmp/.+ but received provided /home/tmp/x'
    assert.deepEqual(await told('home'), [said(`Warning VolumeFailedDelete ${why}`)])
    assert.deepEqual(folders, [])
  })

  it('recycles a volume with a pod', async () => {
    await volume('v', { persistentVolumeReclaimPolicy: 'Recycle', size: '3Gi' })
    await claim('c')
    await remove('c')
    const where = { namespace: 'default', name: 'recycler-for-v' }
    const { spec } = await client.get(Pods, where)
    assert.deepEqual(
      [spec.activeDeadlineSeconds, spec.volumes],
      [90, [{ name: 'vol', hostPath: { path: '/tmp/v', type: '' } }]],
    )
    assert.equal((await readVolume('v')).status.phase, 'Released')
    await client.patch(
      Pods,
      { ...where, subresource: 'status' },
      { type: 'merge', value: { status: { phase: 'Succeeded' } } },
    )
    await clock.advance(1000)
    const { status, spec: emptied } = await readVolume('v')
    assert.deepEqual([status.phase, emptied.claimRef], ['Available', undefined])
    assert.deepEqual(await told('v'), [said('Normal VolumeRecycled Volume recycled')])
    await claim('d')
    assert.deepEqual(await phases('d', 'v'), ['Bound', 'Bound'])
  })

  it('reports a failed recycling, and retries', async () => {
    await volume('v', { persistentVolumeReclaimPolicy: 'Recycle' })
    await claim('c')
    await remove('c')
    const where = { namespace: 'default', name: 'recycler-for-v', subresource: 'status' }
    await client.patch(Pods, where, { type: 'merge', value: { status: { phase: 'Failed', message: 'no such disk' } } })
    await clock.advance(1000)
    assert.equal((await readVolume('v')).status.phase, 'Failed')
    assert.deepEqual(await told('v'), [
      said('Warning VolumeFailedRecycle Recycle failed: failed to recycle volume: no such disk'),
    ])
  })
})
