/** Scenarios of volumes: bound, retained, lost, provisioned, recycled, protected, expanded, attached. */
import { Nodes, PersistentVolumeClaims, PersistentVolumes, Pods } from '#apis/core/v1.ts'
import { StorageClasses, type VolumeAttachment, VolumeAttachments } from '#apis/storage/v1.ts'

import type { Act, Scenario } from './scenario.ts'

interface Wish {
  readonly size?: string
  readonly [field: string]: unknown
}

const claim = (act: Act, name: string, { size = '1Gi', ...more }: Wish = {}): Promise<unknown> => {
  const spec = { accessModes: ['ReadWriteOnce'], resources: { requests: { storage: size } }, ...more }
  return act.make(PersistentVolumeClaims, name, { spec })
}

/** Volumes are the cluster's: their names begin with the scenario's, and so do their classes. */
const nameOf = (act: Act, name: string): string => `${act.ns}-${name}`

const volume = async (act: Act, name: string, { size = '1Gi', ...more }: Wish = {}): Promise<void> => {
  const spec = {
    accessModes: ['ReadWriteOnce'],
    capacity: { storage: size },
    persistentVolumeReclaimPolicy: 'Retain',
    storageClassName: nameOf(act, 'class'),
    nfs: { server: 's', path: '/' },
    ...more,
  }
  await act.make(PersistentVolumes, nameOf(act, name), { spec })
  await phase(act, name, 'Available')
}

const phase = (act: Act, name: string, wanted: string): Promise<void> =>
  act.until(PersistentVolumes, nameOf(act, name), ({ status }) => status.phase === wanted)

const bound = (act: Act, name: string): Promise<void> =>
  act.until(PersistentVolumeClaims, name, ({ status }) => status.phase === 'Bound')

const pod = (act: Act, name: string, claimName: string, more: object = {}): Promise<unknown> => {
  const containers = [{ name: 'c', image: 'i' }]
  const volumes = [{ name: 'v', persistentVolumeClaim: { claimName } }]
  return act.make(Pods, name, { spec: { containers, volumes, terminationGracePeriodSeconds: 0, ...more } })
}

const csi = (handle: string): Wish => ({ csi: { driver: 'csi.example.com', volumeHandle: handle }, nfs: undefined })

const clusterKinds = [PersistentVolumes]

export const VOLUMES: readonly Scenario[] = [
  {
    name: 'claim is bound to the smallest suitable volume',
    clusterKinds,
    async run(act) {
      for (const [name, size] of [
        ['large', '9Gi'],
        ['small', '3Gi'],
        ['tiny', '1Gi'],
      ] as const)
        await volume(act, name, { size })
      await claim(act, 'c', { size: '2Gi', storageClassName: nameOf(act, 'class') })
      await bound(act, 'c')
    },
  },
  {
    name: 'volumes and claims that refer to each other by name',
    clusterKinds,
    async run(act) {
      const storageClassName = nameOf(act, 'class')
      await volume(act, 'kept', { claimRef: { namespace: act.ns, name: 'c' } })
      await volume(act, 'named')
      await volume(act, 'block', { volumeMode: 'Block' })
      await claim(act, 'c', { storageClassName })
      await claim(act, 'd', { storageClassName, volumeName: nameOf(act, 'named') })
      await bound(act, 'c')
      await bound(act, 'd')
      await claim(act, 'late', { storageClassName, volumeName: nameOf(act, 'named') })
      await claim(act, 'mode', { storageClassName, volumeName: nameOf(act, 'block') })
      await claim(act, 'large', { storageClassName, volumeName: nameOf(act, 'none') })
    },
  },
  {
    name: 'volume with policy Retain, and one whose deletion fails',
    clusterKinds,
    async run(act) {
      const storageClassName = nameOf(act, 'class')
      await volume(act, 'keep')
      await claim(act, 'c', { storageClassName })
      await bound(act, 'c')
      await act.remove(PersistentVolumeClaims, 'c')
      await phase(act, 'keep', 'Released')
      await volume(act, 'del', { persistentVolumeReclaimPolicy: 'Delete' })
      await claim(act, 'd', { storageClassName })
      await bound(act, 'd')
      await act.remove(PersistentVolumeClaims, 'd')
      await phase(act, 'del', 'Failed')
    },
  },
  {
    name: 'volume that an external provisioner deletes',
    clusterKinds,
    async run(act) {
      await volume(act, 'v', { persistentVolumeReclaimPolicy: 'Delete', ...csi('h') })
      await claim(act, 'c', { storageClassName: nameOf(act, 'class') })
      await bound(act, 'c')
      await act.remove(PersistentVolumeClaims, 'c')
      await phase(act, 'v', 'Released')
    },
  },
  {
    name: 'volume with policy Recycle',
    clusterKinds,
    async run(act) {
      await volume(act, 'v', { persistentVolumeReclaimPolicy: 'Recycle', size: '3Gi' })
      await claim(act, 'c', { storageClassName: nameOf(act, 'class'), size: '2Gi' })
      await bound(act, 'c')
      await act.remove(PersistentVolumeClaims, 'c')
      const recycler = { namespace: 'default', name: `recycler-for-${nameOf(act, 'v')}` }
      for (let tries = 0; tries < 100; tries++) {
        const there = await act.client.get(Pods, recycler).catch(() => undefined)
        if (there !== undefined) break
        await act.wait(50)
      }
      const status = { phase: 'Succeeded' }
      await act.client.patch(Pods, { ...recycler, subresource: 'status' }, { type: 'merge', value: { status } })
      await phase(act, 'v', 'Available')
    },
  },
  {
    name: 'claim that loses its volume',
    clusterKinds,
    async run(act) {
      await volume(act, 'v')
      await claim(act, 'c', { storageClassName: nameOf(act, 'class') })
      await bound(act, 'c')
      await act.remove(PersistentVolumes, nameOf(act, 'v'))
      await act.change(PersistentVolumes, nameOf(act, 'v'), { metadata: { finalizers: null } })
      await act.until(PersistentVolumeClaims, 'c', ({ status }) => status.phase === 'Lost')
    },
  },
  {
    name: 'claims for an external provisioner, and without any',
    allows: [
      {
        line: / ExternalProvisioning /,
        isCount: true,
        why: "whether upstream's manager is done with handing a claim over when it hears of its own write, and tells once or twice, is chance",
      },
    ],
    async run(act) {
      await act.make(StorageClasses, nameOf(act, 'ext'), { provisioner: 'example.com/prov' })
      await act.make(StorageClasses, nameOf(act, 'ebs'), { provisioner: 'kubernetes.io/aws-ebs' })
      await act.make(StorageClasses, nameOf(act, 'none'), { provisioner: 'kubernetes.io/no-provisioner' })
      await act.make(StorageClasses, nameOf(act, 'folder'), { provisioner: 'kubernetes.io/host-path' })
      const volumeBindingMode = 'WaitForFirstConsumer'
      await act.make(StorageClasses, nameOf(act, 'late'), { provisioner: 'example.com/prov', volumeBindingMode })
      for (const name of ['ext', 'ebs', 'none', 'folder', 'late', 'missing']) {
        await claim(act, name, { storageClassName: nameOf(act, name) })
      }
      await claim(act, 'classless', { storageClassName: '' })
      await act.wait(1000)
      for (const name of ['ext', 'ebs', 'none', 'folder', 'late']) await act.remove(StorageClasses, nameOf(act, name))
    },
  },
  {
    name: 'claim of an ephemeral volume, and a foreign claim of that name',
    async run(act) {
      const spec = { accessModes: ['ReadWriteOnce'], resources: { requests: { storage: '1Gi' } }, storageClassName: '' }
      const volumeClaimTemplate = { metadata: { labels: { a: 'b' } }, spec }
      const volumes = [{ name: 'e', ephemeral: { volumeClaimTemplate } }]
      const containers = [{ name: 'c', image: 'i' }]
      await claim(act, 'q-e', { storageClassName: '' })
      for (const name of ['p', 'q']) await act.make(Pods, name, { spec: { containers, volumes } })
      await act.wait(2000)
    },
  },
  {
    name: 'claim in use stays until its pod is deleted',
    clusterKinds,
    async run(act) {
      await volume(act, 'v')
      await claim(act, 'c', { storageClassName: nameOf(act, 'class') })
      await bound(act, 'c')
      await pod(act, 'p', 'c')
      await act.until(Pods, 'p', ({ status }) => status.phase === 'Running')
      await act.remove(PersistentVolumeClaims, 'c')
      await act.remove(PersistentVolumes, nameOf(act, 'v'))
      await act.wait(2000)
      await act.remove(Pods, 'p')
      await act.gone(PersistentVolumeClaims, 'c')
      await act.gone(PersistentVolumes, nameOf(act, 'v'))
    },
  },
  {
    name: 'claims that are expanded',
    clusterKinds,
    async run(act) {
      const storageClassName = nameOf(act, 'class')
      await act.make(StorageClasses, storageClassName, { provisioner: 'example.com/prov', allowVolumeExpansion: true })
      await volume(act, 'csi', csi('grow'))
      await volume(act, 'old', { nfs: undefined, gcePersistentDisk: { pdName: 'd' } })
      for (const name of ['csi', 'old']) {
        await claim(act, name, { storageClassName, volumeName: nameOf(act, name) })
        await bound(act, name)
        await act.change(PersistentVolumeClaims, name, { spec: { resources: { requests: { storage: '2Gi' } } } })
      }
      await act.wait(1000)
      await act.remove(StorageClasses, storageClassName)
    },
  },
  {
    name: 'volume is attached to the node of its pod, and then to another node',
    clusterKinds,
    isAlone: true,
    async run(act) {
      const annotations = { 'volumes.kubernetes.io/controller-managed-attach-detach': 'true' }
      for (const node of ['virtual-1', 'virtual-2']) await act.change(Nodes, node, { metadata: { annotations } })
      await volume(act, 'v', csi(act.ns))
      await claim(act, 'c', { storageClassName: nameOf(act, 'class') })
      await bound(act, 'c')
      const report = async (node: string, status: object): Promise<void> => {
        const isIts = ({ spec }: VolumeAttachment): boolean => spec.nodeName === node
        await act.untilAll(VolumeAttachments, (all) => all.some(isIts))
        for (const { metadata } of (await act.list(VolumeAttachments)).filter(isIts)) {
          await act.change(VolumeAttachments, metadata.name ?? '', { status }, 'status')
        }
      }
      const name = `kubernetes.io/csi/csi.example.com^${act.ns}`
      const isAttached = (node: string): Promise<void> =>
        act.until(Nodes, node, ({ status }) => status.volumesAttached?.length === 1)
      await pod(act, 'p', 'c', { nodeName: 'virtual-1' })
      await report('virtual-1', { attached: false, attachError: { message: 'boom' } })
      await act.wait(700)
      await report('virtual-1', { attached: true, attachError: null })
      await isAttached('virtual-1')
      await act.change(Nodes, 'virtual-1', { status: { volumesInUse: [name] } }, 'status')
      await pod(act, 'q', 'c', { nodeName: 'virtual-2' })
      await act.wait(1000)
      await act.remove(Pods, 'p')
      await act.gone(Pods, 'p')
      await act.change(Nodes, 'virtual-1', { status: { volumesInUse: null } }, 'status')
      await act.until(Nodes, 'virtual-1', ({ status }) => status.volumesAttached === undefined)
      await report('virtual-2', { attached: true })
      await isAttached('virtual-2')
    },
  },
]
