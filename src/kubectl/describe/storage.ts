/** Volumes, claims to them and their classes. */
import type { PersistentVolume, PersistentVolumeClaim, Pod } from '#apis/core/v1.ts'
import type { CSINode, StorageClass, VolumeAttributesClass } from '#apis/storage/v1.ts'
import { labelsText } from '#meta/labels.ts'

import { accessModesText, phaseText, putClaim, storageClassOf } from './claim.ts'
import type { Surroundings } from './describer.ts'
import { Page } from './page.ts'
import { boolText, listText, putClusterHead, putEventsOf } from './sections.ts'
import { dateText } from './times.ts'
import { putPersistentSource } from './volumes.ts'

interface Requirement {
  readonly key: string
  readonly operator?: string
  readonly values?: readonly string[]
}

/** `Term 0:` and what it asks for, below each other. */
function putTerm(page: Page, level: number, at: number, requirements: readonly Requirement[] = []): void {
  const texts = requirements.map(({ key, operator = 'In', values = [] }) => {
    const list = values.length === 0 ? '' : ` [${values.join(', ')}]`
    return `${key} ${operator.toLowerCase()}${list}`
  })
  const [first = '<none>', ...others] = texts
  page.put(level, `Term ${at}:\t${first}\n`)
  for (const text of others) page.put(level, `\t${text}\n`)
}

export async function describePersistentVolume(volume: PersistentVolume, around: Surroundings): Promise<string> {
  const page = new Page()
  const { metadata, spec, status } = volume
  putClusterHead(page, volume)
  const claim = spec.claimRef
  page.rows(0, [
    ['Finalizers', listText(metadata.finalizers)],
    ['StorageClass', storageClassOf(volume)],
    ['Status', phaseText(metadata, status.phase, around.nowMs)],
    ['Claim', claim === undefined ? '' : `${claim.namespace ?? ''}/${claim.name ?? ''}`],
    ['Reclaim Policy', spec.persistentVolumeReclaimPolicy ?? ''],
    ['Access Modes', accessModesText(spec.accessModes)],
    ['VolumeMode', spec.volumeMode],
    ['Capacity', spec.capacity?.['storage'] ?? '0'],
  ])
  const required = spec.nodeAffinity?.required
  page.row(0, 'Node Affinity', required === undefined ? '<none>' : '')
  if (required !== undefined) {
    const terms = required.nodeSelectorTerms
    page.row(1, 'Required Terms', terms.length === 0 ? '<none>' : '')
    for (const [at, { matchExpressions }] of terms.entries()) putTerm(page, 2, at, matchExpressions)
  }
  page.row(0, 'Message', status.message ?? '')
  putPersistentSource(page, spec)
  await putEventsOf(page, volume, around)
  return page.text()
}

export async function describePersistentVolumeClaim(
  claim: PersistentVolumeClaim,
  around: Surroundings,
): Promise<string> {
  const page = new Page()
  putClaim(page, claim, around.nowMs)
  const users = await usersOf(claim, around)
  page.lines('Used By', users.sort())
  const { conditions = [] } = claim.status ?? {}
  if (conditions.length > 0) {
    page.put(0, 'Conditions:\n')
    page.line(1, 'Type', 'Status', 'LastProbeTime', 'LastTransitionTime', 'Reason', 'Message')
    page.line(1, '----', '------', '-----------------', '------------------', '------', '-------')
    for (const one of conditions) {
      const [probed, changed] = [dateText(one.lastProbeTime), dateText(one.lastTransitionTime)]
      page.line(1, `${one.type} `, `${one.status} `, `${probed} `, `${changed} `, `${one.reason ?? ''} `, one.message)
    }
  }
  await putEventsOf(page, claim, around)
  return page.text()
}

/** Pods that name the claim, and those it belongs to. */
async function usersOf({ metadata }: PersistentVolumeClaim, around: Surroundings): Promise<string[]> {
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

export async function describeStorageClass(storageClass: StorageClass, around: Surroundings): Promise<string> {
  const page = new Page()
  const { metadata, mountOptions = [], allowedTopologies } = storageClass
  const isDefault = DEFAULT_CLASS.some((annotation) => metadata.annotations?.[annotation] === 'true')
  page.rows(0, [
    ['Name', metadata.name],
    ['IsDefaultClass', isDefault ? 'Yes' : 'No'],
    ['Annotations', labelsText(metadata.annotations)],
    ['Provisioner', storageClass.provisioner],
    ['Parameters', labelsText(storageClass.parameters)],
    ['AllowVolumeExpansion', boolText(storageClass.allowVolumeExpansion)],
  ])
  if (mountOptions.length === 0) page.row(0, 'MountOptions', '<none>')
  else page.put(0, 'MountOptions:\n')
  for (const option of mountOptions) page.line(1, option)
  page.row(0, 'ReclaimPolicy', storageClass.reclaimPolicy)
  page.row(0, 'VolumeBindingMode', storageClass.volumeBindingMode)
  if (allowedTopologies !== undefined) {
    page.row(0, 'AllowedTopologies', allowedTopologies.length === 0 ? '<none>' : '')
    for (const [at, { matchLabelExpressions }] of allowedTopologies.entries()) {
      putTerm(page, 1, at, matchLabelExpressions)
    }
  }
  await putEventsOf(page, storageClass, around)
  return page.text()
}

export async function describeVolumeAttributesClass(one: VolumeAttributesClass, around: Surroundings): Promise<string> {
  const page = new Page()
  page.rows(0, [
    ['Name', one.metadata.name],
    ['Annotations', labelsText(one.metadata.annotations)],
    ['DriverName', one.driverName],
    ['Parameters', labelsText(one.parameters)],
  ])
  await putEventsOf(page, one, around)
  return page.text()
}

export async function describeCsiNode(node: CSINode, around: Surroundings): Promise<string> {
  const page = new Page()
  putClusterHead(page, node)
  page.row(0, 'CreationTimestamp', dateText(node.metadata.creationTimestamp))
  page.put(0, 'Spec:\n')
  const { drivers } = node.spec
  if (drivers !== null && drivers !== undefined) page.put(1, 'Drivers:\n')
  for (const { name, nodeID, allocatable, topologyKeys } of drivers ?? []) {
    page.put(2, `${name}:\n`)
    page.row(3, 'Node ID', nodeID)
    if (allocatable?.count !== undefined) {
      page.put(3, 'Allocatables:\n')
      page.row(4, 'Count', allocatable.count)
    }
    if (topologyKeys !== null && topologyKeys !== undefined) page.row(3, 'Topology Keys', listText(topologyKeys))
  }
  await putEventsOf(page, node, around)
  return page.text()
}
