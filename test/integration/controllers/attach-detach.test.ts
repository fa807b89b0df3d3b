/** Tests attach and detach of volumes on a complete API server with a virtual clock; the test acts as the driver. */
import assert from 'node:assert/strict'
import { afterEach, beforeEach, describe, it } from 'node:test'

import { Events, Namespaces, Nodes, PersistentVolumeClaims, PersistentVolumes, Pods } from '#apis/core/v1.ts'
import { CSIDrivers, type VolumeAttachment, VolumeAttachments, CSINodes } from '#apis/storage/v1.ts'
import type { ApiClient } from '#client/api-client.ts'
import { type ControllerSettings, controllerSettings } from '#controllers/settings.ts'
import { attachDetachController } from '#controllers/volumes/attach-detach/controller.ts'
import { persistentVolumeBinderController } from '#controllers/volumes/persistentvolume-binder/controller.ts'
import { type RunningControllers, startControllers } from '#kits/controllers/start.ts'
import { createVirtualClock, type VirtualClock } from '#lib/clock.ts'
import { type ControlPlane, startControlPlane } from '#testing/control-plane.ts'

let clock: VirtualClock
let plane: ControlPlane
let controllers: RunningControllers
let client: ApiClient
const namespace = 'storage'
const V1 = 'kubernetes.io/csi/csi.example.com^h1'

beforeEach(async () => {
  clock = createVirtualClock(Date.UTC(2026, 0, 1))
  plane = await startControlPlane({ clock, settings: { 'disable-admission-plugins': ['ServiceAccount'] } })
  start()
  await client.create(Namespaces, { metadata: { name: namespace } })
  for (const name of ['n1', 'n2']) await node(name)
})

afterEach(async () => {
  await controllers.stop()
  await plane.stop()
})

const start = (settings: Partial<ControllerSettings> = {}): void => {
  const list = [attachDetachController, persistentVolumeBinderController]
  controllers = startControllers(plane, clock, list, { settings: controllerSettings(settings) })
  client = controllers.client
}

const node = async (name: string): Promise<void> => {
  const annotations = { 'volumes.kubernetes.io/controller-managed-attach-detach': 'true' }
  await client.create(Nodes, { metadata: { name, annotations } })
  await nodeStatus(name, { conditions: [{ type: 'Ready', status: 'True' }] })
}

const nodeStatus = async (name: string, status: object): Promise<void> => {
  await client.patch(Nodes, { name, subresource: 'status' }, { type: 'merge', value: { status } })
  await clock.advance(100)
}

/** A volume and a claim that is bound to it. */
const volume = async (name: string, handle: string, accessModes = ['ReadWriteOnce']): Promise<void> => {
  const spec = {
    accessModes,
    capacity: { storage: '1Gi' },
    persistentVolumeReclaimPolicy: 'Retain',
    csi: { driver: 'csi.example.com', volumeHandle: handle },
  }
  await client.create(PersistentVolumes, { metadata: { name }, spec })
  await clock.advance(100)
  const claim = { accessModes, volumeName: name, resources: { requests: { storage: '1Gi' } } }
  await client.create(PersistentVolumeClaims, { metadata: { namespace, name }, spec: claim })
  await clock.advance(500)
}

const pod = async (name: string, claimName: string, nodeName: string): Promise<void> => {
  const containers = [{ name: 'c', image: 'i', resources: {} }]
  const volumes = [{ name: 'v', persistentVolumeClaim: { claimName } }]
  await client.create(Pods, { metadata: { namespace, name }, spec: { containers, volumes, nodeName } })
  await clock.advance(100)
}

const deletePod = async (name: string): Promise<void> => {
  await client.delete(Pods, { namespace, name }, { gracePeriodSeconds: 0 })
  await clock.advance(100)
}

const attachments = async (): Promise<VolumeAttachment[]> => (await client.list(VolumeAttachments)).items

/** Reports a status of the only attachment, as the driver. */
const driverSays = async (status: object): Promise<void> => {
  const [attachment] = await attachments()
  const where = { name: attachment?.metadata.name ?? '', subresource: 'status' }
  await client.patch(VolumeAttachments, where, { type: 'merge', value: { status } })
  await clock.advance(1000)
}

const attachedTo = async (name: string): Promise<string[]> => {
  const { status } = await client.get(Nodes, { name })
  return (status.volumesAttached ?? []).map((one) => `${one.name}${one.devicePath}`)
}

const told = async (name: string): Promise<string[]> => {
  const { items } = await client.list(Events, { namespace })
  return items
    .filter(
      ({ involvedObject, reportingComponent }) =>
        involvedObject.name === name && reportingComponent === 'attachdetach-controller',
    )
    .map(({ type, reason, message }) => `${type} ${reason} ${message}`)
}

describe('attach/detach controller', () => {
  it('attaches the volume of a pod, reports it in node status, and detaches it after the pod is gone', async () => {
    await volume('pv1', 'h1')
    await pod('q1', 'pv1', 'n1')
    const [attachment, ...more] = await attachments()
    assert.deepEqual(more, [])
    assert.equal(attachment?.metadata.name, 'csi-8157d03abc5a2bde671ba3121addefb9168531d96b38761bc92ae350c651387b')
    assert.deepEqual(attachment.spec, {
      attacher: 'csi.example.com',
      source: { persistentVolumeName: 'pv1' },
      nodeName: 'n1',
    })
    assert.deepEqual(await attachedTo('n1'), [])
    await driverSays({ attached: true })
    assert.deepEqual(await attachedTo('n1'), [V1])
    assert.deepEqual(await told('q1'), [
      'Normal SuccessfulAttachVolume AttachVolume.Attach succeeded for volume "pv1" ',
    ])
    await deletePod('q1')
    assert.deepEqual([await attachedTo('n1'), await attachments()], [[], []])
  })

  it('attaches no volumes on unmanaged nodes, nor for a driver without attachment', async () => {
    const unmanaged = { metadata: { annotations: null } }
    await client.patch(Nodes, { name: 'n2' }, { type: 'merge', value: unmanaged })
    await volume('pv1', 'h1')
    await pod('q1', 'pv1', 'n2')
    assert.deepEqual(await attachments(), [])
    await client.create(CSIDrivers, { metadata: { name: 'csi.example.com' }, spec: { attachRequired: false } })
    await pod('q2', 'pv1', 'n1')
    assert.deepEqual(await attachments(), [])
  })

  it('uses the CSI driver for an in-tree volume on migrated nodes', async () => {
    const containers = [{ name: 'c', image: 'i', resources: {} }]
    const volumes = [{ name: 'v', awsElasticBlockStore: { volumeID: 'aws://zone/vol-1', fsType: 'ext4' } }]
    await client.create(Pods, { metadata: { namespace, name: 'q1' }, spec: { containers, volumes, nodeName: 'n1' } })
    await clock.advance(1000)
    assert.deepEqual(await attachments(), [])
    const annotations = { 'storage.alpha.kubernetes.io/migrated-plugins': 'kubernetes.io/aws-ebs,kubernetes.io/gce-pd' }
    await client.create(CSINodes, { metadata: { name: 'n1', annotations }, spec: { drivers: [] } })
    await clock.advance(1000)
    const [attachment] = await attachments()
    const csi = {
      driver: 'ebs.csi.aws.com',
      volumeHandle: 'vol-1',
      fsType: 'ext4',
      volumeAttributes: { partition: '0' },
    }
    assert.equal(attachment?.spec.attacher, 'ebs.csi.aws.com')
    assert.deepEqual(attachment.spec.source, { inlineVolumeSpec: { accessModes: ['ReadWriteOnce'], csi } })
    await driverSays({ attached: true })
    assert.deepEqual(await attachedTo('n1'), ['kubernetes.io/csi/ebs.csi.aws.com^vol-1'])
    await deletePod('q1')
    await clock.advance(1000)
    assert.deepEqual(await attachments(), [])
  })

  it("reports the driver's error, and retries", async () => {
    await volume('pv2', 'h2')
    await pod('q1', 'pv2', 'n1')
    await driverSays({ attached: false, attachError: { message: 'boom' } })
    assert.deepEqual(await told('q1'), [
      'Warning FailedAttachVolume AttachVolume.Attach failed for volume "pv2" : boom',
    ])
    await driverSays({ attached: true, attachError: null })
    await clock.advance(5000)
    assert.deepEqual(await attachedTo('n1'), ['kubernetes.io/csi/csi.example.com^h2'])
  })

  it('times out after two minutes without a response of the driver', async () => {
    await volume('pv1', 'h1')
    await pod('q1', 'pv1', 'n1')
    await clock.advance(119_000)
    assert.deepEqual(await told('q1'), [])
    await clock.advance(8000)
    const message = 'timed out waiting for external-attacher of csi.example.com CSI driver to attach volume h1'
    assert.deepEqual(await told('q1'), [
      `Warning FailedAttachVolume AttachVolume.Attach failed for volume "pv1" : ${message}`,
    ])
  })

  it('waits while another node has the volume, and names the pods there', async () => {
    await volume('pv1', 'h1')
    await pod('q1', 'pv1', 'n1')
    await driverSays({ attached: true })
    await nodeStatus('n1', { volumesInUse: [V1] })
    await pod('q2', 'pv1', 'n2')
    await clock.advance(10_000)
    assert.deepEqual(await told('q2'), [
      'Warning FailedAttachVolume Waiting for detach for volume "pv1" Volume is already used by pod(s) q1',
    ])
    await deletePod('q1')
    await pod('q3', 'pv1', 'n2')
    assert.equal((await attachments())[0]?.spec.nodeName, 'n1')
    await nodeStatus('n1', { volumesInUse: [] })
    await clock.advance(1000)
    assert.equal((await attachments())[0]?.spec.nodeName, 'n2')
    await driverSays({ attached: true })
    assert.deepEqual([await attachedTo('n1'), await attachedTo('n2')], [[], [V1]])
    assert.match((await told('q3')).join(), /SuccessfulAttachVolume/)
  })

  it('names no pods if those that used the volume are gone', async () => {
    await volume('pv1', 'h1')
    await pod('q1', 'pv1', 'n1')
    await driverSays({ attached: true })
    await nodeStatus('n1', { volumesInUse: [V1] })
    await deletePod('q1')
    await pod('q2', 'pv1', 'n2')
    const text =
      'Volume is already exclusively attached to one node, waiting on detach before it can be attached to another node'
    assert.deepEqual(await told('q2'), [`Warning FailedAttachVolume Waiting for detach for volume "pv1" ${text}`])
  })

  it('attaches a shared volume to several nodes', async () => {
    await volume('pv1', 'h1', ['ReadWriteMany'])
    await pod('q1', 'pv1', 'n1')
    await pod('q2', 'pv1', 'n2')
    assert.deepEqual((await attachments()).map(({ spec }) => spec.nodeName).toSorted(), ['n1', 'n2'])
  })
})

describe('attach/detach controller with a node that does not unmount', () => {
  const inUse = async (): Promise<void> => {
    await volume('pv1', 'h1')
    await pod('q1', 'pv1', 'n1')
    await driverSays({ attached: true })
    await nodeStatus('n1', { volumesInUse: [V1] })
    await deletePod('q1')
  }

  it('keeps the volume on a healthy node, and detaches it six minutes after the node became unhealthy', async () => {
    await inUse()
    await clock.advance(400_000)
    assert.equal((await attachments()).length, 1)
    await nodeStatus('n1', { conditions: [{ type: 'Ready', status: 'Unknown' }] })
    await clock.advance(1000)
    assert.deepEqual([await attachedTo('n1'), await attachments()], [[], []])
  })

  it('detaches the volume after exactly six minutes', async () => {
    await inUse()
    await nodeStatus('n1', { conditions: [{ type: 'Ready', status: 'Unknown' }] })
    await clock.advance(355_000)
    assert.equal((await attachments()).length, 1)
    await clock.advance(6000)
    assert.equal((await attachments()).length, 0)
  })

  it('keeps the volume forever if force detach is disabled', async () => {
    await controllers.stop()
    start({ 'disable-force-detach-on-timeout': true })
    await inUse()
    await nodeStatus('n1', { conditions: [{ type: 'Ready', status: 'Unknown' }] })
    await clock.advance(420_000)
    assert.equal((await attachments()).length, 1)
  })

  it('detaches the volume at once if the node is out of service', async () => {
    await inUse()
    const taints = [{ key: 'node.kubernetes.io/out-of-service', effect: 'NoExecute' }]
    await client.patch(Nodes, { name: 'n1' }, { type: 'merge', value: { spec: { taints } } })
    await clock.advance(1000)
    assert.deepEqual(await attachments(), [])
  })
})

describe('restarted attach/detach controller', () => {
  it('rebuilds its state from nodes and attachments, and detaches unused volumes', async () => {
    await volume('pv1', 'h1')
    await pod('q1', 'pv1', 'n1')
    await driverSays({ attached: true })
    await controllers.stop()
    await deletePod('q1')
    start()
    await clock.advance(1000)
    await nodeStatus('n1', { volumesInUse: [] })
    await clock.advance(61_000)
    assert.deepEqual([await attachedTo('n1'), await attachments()], [[], []])
  })

  it('keeps attachments of volumes in use', async () => {
    await volume('pv1', 'h1')
    await pod('q1', 'pv1', 'n1')
    await driverSays({ attached: true })
    const before = await attachments()
    await controllers.stop()
    start()
    await clock.advance(120_000)
    assert.deepEqual([await attachedTo('n1'), await attachments()], [[V1], before])
  })
})

describe('VolumeAttachment in the attach/detach controller', () => {
  it('is recreated after a deletion', async () => {
    await volume('pv1', 'h1')
    await pod('q1', 'pv1', 'n1')
    await driverSays({ attached: true })
    const [before] = await attachments()
    await client.delete(VolumeAttachments, { name: before?.metadata.name ?? '' })
    await clock.advance(61_000)
    const [after] = await attachments()
    assert.equal(after?.metadata.name, before?.metadata.name)
    assert.notEqual(after?.metadata.uid, before?.metadata.uid)
  })

  it('is added again to a node status that lost it', async () => {
    await volume('pv1', 'h1')
    await pod('q1', 'pv1', 'n1')
    await driverSays({ attached: true })
    await nodeStatus('n1', { volumesAttached: null })
    await clock.advance(1000)
    assert.deepEqual(await attachedTo('n1'), [V1])
  })
})
