/** Describes persistent volumes, claims and storage classes. */
import type { PersistentVolume, PersistentVolumeClaim, Pod } from '#apis/core/v1.ts'
import type { CSINode, CSINodeDriver, StorageClass, VolumeAttributesClass } from '#apis/storage/v1.ts'
import { labelsText } from '#meta/labels.ts'

import { accessModesText, claimRows, storageClassOf } from './claim.ts'
import { type DescribedKinds, describes } from './describer.ts'
import type { RelatedObjects } from './related.ts'
import { cells, nested, type Part, type Row, unlessEmpty } from './rows.ts'
import { boolText, clusterHead, listText, phaseText } from './sections.ts'
import { dateText } from './times.ts'
import { persistentSourceRow } from './volumes.ts'

export const STORAGE_KINDS: DescribedKinds = {
  PersistentVolume: describes('v1/persistentvolumes', volumeRows),
  PersistentVolumeClaim: describes<PersistentVolumeClaim>('v1/persistentvolumeclaims', async (claim, around) => [
    ...claimRows(claim, around.nowMs),
    ['Used By', { lines: (await usersOf(claim, around)).sort() }],
    ['Conditions', claimConditions(claim)],
  ]),
  'StorageClass.storage.k8s.io': describes('storage.k8s.io/v1/storageclasses', storageClassRows),
  'VolumeAttributesClass.storage.k8s.io': describes<VolumeAttributesClass>(
    'storage.k8s.io/v1/volumeattributesclasses',
    ({ metadata, driverName, parameters }) => [
      ['Name', metadata.name],
      ['Annotations', labelsText(metadata.annotations)],
      ['DriverName', driverName],
      ['Parameters', labelsText(parameters)],
    ],
  ),
  'CSINode.storage.k8s.io': describes<CSINode>('storage.k8s.io/v1/csinodes', (node) => [
    ...clusterHead(node),
    ['CreationTimestamp', dateText(node.metadata.creationTimestamp)],
    ['Spec', [['Drivers', node.spec.drivers?.map(driverRow)]]],
  ]),
}

interface Requirement {
  readonly key: string
  readonly operator?: string
  readonly values?: readonly string[]
}

/** `Term 0:` and its expressions on separate lines. */
function termRow(requirements: readonly Requirement[] = [], at: number): Row {
  const lines = requirements.map(({ key, operator = 'In', values = [] }) => {
    const list = values.length === 0 ? '' : ` [${values.join(', ')}]`
    return `${key} ${operator.toLowerCase()}${list}`
  })
  return [`Term ${at}`, { lines }]
}

function volumeRows(volume: PersistentVolume, around: RelatedObjects): Part[] {
  const { metadata, spec, status } = volume
  const claim = spec.claimRef
  const terms = spec.nodeAffinity?.required?.nodeSelectorTerms
  return [
    ...clusterHead(volume),
    ['Finalizers', listText(metadata.finalizers)],
    ['StorageClass', storageClassOf(volume)],
    ['Status', phaseText(metadata, status.phase, around.nowMs)],
    ['Claim', claim === undefined ? '' : `${claim.namespace ?? ''}/${claim.name ?? ''}`],
    ['Reclaim Policy', spec.persistentVolumeReclaimPolicy ?? ''],
    ['Access Modes', accessModesText(spec.accessModes)],
    ['VolumeMode', spec.volumeMode],
    ['Capacity', spec.capacity?.['storage'] ?? '0'],
    ['Node Affinity', terms === undefined ? '<none>' : ''],
    nested(
      ['Required Terms', terms && (terms.length === 0 ? '<none>' : '')],
      nested(...(terms ?? []).map(({ matchExpressions }, at) => termRow(matchExpressions, at))),
    ),
    ['Message', status.message ?? ''],
    persistentSourceRow(spec),
  ]
}

function claimConditions({ status }: PersistentVolumeClaim): readonly Part[] | undefined {
  const { conditions = [] } = status ?? {}
  if (conditions.length === 0) return undefined
  const rows = conditions.map((one) => {
    const [probed, changed] = [dateText(one.lastProbeTime), dateText(one.lastTransitionTime)]
    return cells(`${one.type} `, `${one.status} `, `${probed} `, `${changed} `, `${one.reason ?? ''} `, one.message)
  })
  return [
    cells('Type', 'Status', 'LastProbeTime', 'LastTransitionTime', 'Reason', 'Message'),
    cells('----', '------', '-----------------', '------------------', '------', '-------'),
    ...rows,
  ]
}

/** Pods that use the claim, and pods that own it. */
async function usersOf({ metadata }: PersistentVolumeClaim, around: RelatedObjects): Promise<string[]> {
  const pods = await around.list<Pod>('v1/pods', metadata.namespace ?? '')
  const owners = new Set((metadata.ownerReferences ?? []).filter(({ kind }) => kind === 'Pod').map(({ uid }) => uid))
  const users = pods.filter(
    (pod) =>
      owners.has(pod.metadata.uid ?? '') ||
      pod.spec.volumes?.some(({ persistentVolumeClaim }) => persistentVolumeClaim?.claimName === metadata.name),
  )
  return users.map((pod) => pod.metadata.name ?? '')
}

const DEFAULT_CLASS = [
  'storageclass.kubernetes.io/is-default-class',
  'storageclass.beta.kubernetes.io/is-default-class',
]

function storageClassRows(storageClass: StorageClass): Part[] {
  const { metadata, mountOptions = [], allowedTopologies } = storageClass
  const isDefault = DEFAULT_CLASS.some((annotation) => metadata.annotations?.[annotation] === 'true')
  return [
    ['Name', metadata.name],
    ['IsDefaultClass', isDefault ? 'Yes' : 'No'],
    ['Annotations', labelsText(metadata.annotations)],
    ['Provisioner', storageClass.provisioner],
    ['Parameters', labelsText(storageClass.parameters)],
    ['AllowVolumeExpansion', boolText(storageClass.allowVolumeExpansion)],
    ['MountOptions', unlessEmpty(mountOptions) ?? '<none>'],
    ['ReclaimPolicy', storageClass.reclaimPolicy],
    ['VolumeBindingMode', storageClass.volumeBindingMode],
    ['AllowedTopologies', allowedTopologies && (allowedTopologies.length === 0 ? '<none>' : '')],
    nested(...(allowedTopologies ?? []).map(({ matchLabelExpressions }, at) => termRow(matchLabelExpressions, at))),
  ]
}

function driverRow({ name, nodeID, allocatable, topologyKeys }: CSINodeDriver): Row {
  const { count } = allocatable ?? {}
  return [
    name,
    [
      ['Node ID', nodeID],
      ['Allocatables', count === undefined ? undefined : [['Count', count]]],
      ['Topology Keys', topologyKeys == null ? undefined : listText(topologyKeys)],
    ],
  ]
}
