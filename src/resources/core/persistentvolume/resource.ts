/** The PersistentVolume resource: a volume in the cluster to which a claim can be bound. */
import { type PersistentVolume, PersistentVolumes, type PersistentVolumeSpec } from '#apis/core/v1.ts'
import { ageColumn, nameColumn } from '#apiserver/registry/columns.ts'
import { defineResource, type Resource } from '#apiserver/registry/resource.ts'
import { timeOf } from '#meta/time.ts'
import { fieldPath } from '#meta/validation/field-path.ts'
import { roundAmounts } from '#model/pod-spec/defaults.ts'
import { amountOf } from '#model/resource-lists.ts'
import {
  accessModesText,
  MOUNT_OPTIONS_ANNOTATION,
  STORAGE_CLASS_ANNOTATION,
  storageClassOf,
} from '#model/volumes/volumes.ts'

import { validateVolume, validateVolumeUpdate } from './validation.ts'

export const persistentVolume: Resource<PersistentVolume> = defineResource<PersistentVolume>({
  kind: PersistentVolumes,
  metadataRules: { update: ['whole', 'whole'] },
  applyDefaults({ spec, status }) {
    if (status !== undefined) status.phase ||= 'Pending'
    if (spec !== undefined) defaultSpec(spec)
  },
  prepareCreate(object, { clock }) {
    object.status = { phase: 'Pending', lastPhaseTransitionTime: timeOf(clock.now()) }
  },
  validate: (object) => validateVolume(object),
  validateUpdate: validateVolumeUpdate,
  warnings: volumeWarnings,
  status: {
    keeps: ['spec'],
    prepareUpdate(next, old, { clock }) {
      const { phase, lastPhaseTransitionTime: time } = next.status
      const before = old.status?.lastPhaseTransitionTime
      const unchanged = phase === old.status?.phase
      // A phase change without a time gets the current time.
      if (!unchanged && (time === undefined || time === before)) {
        next.status.lastPhaseTransitionTime = timeOf(clock.now())
      }
      if (unchanged && time === undefined && before !== undefined) next.status.lastPhaseTransitionTime = before
    },
  },
  columns: [
    nameColumn,
    { name: 'Capacity', value: ({ spec }) => amountOf(spec.capacity, 'storage') ?? '0' },
    { name: 'Access Modes', value: ({ spec }) => accessModesText(spec.accessModes) },
    { name: 'Reclaim Policy', value: ({ spec }) => spec.persistentVolumeReclaimPolicy ?? '' },
    {
      name: 'Status',
      value: ({ metadata, status }) =>
        metadata.deletionTimestamp === undefined ? (status?.phase ?? '') : 'Terminating',
    },
    {
      name: 'Claim',
      value: ({ spec: { claimRef } }) =>
        claimRef === undefined ? '' : `${claimRef.namespace ?? ''}/${claimRef.name ?? ''}`,
    },
    { name: 'StorageClass', value: storageClassOf },
    { name: 'VolumeAttributesClass', value: ({ spec }) => spec.volumeAttributesClassName ?? '<unset>' },
    { name: 'Reason', value: ({ status }) => status?.reason ?? '' },
    ageColumn,
    { name: 'VolumeMode', wide: true, value: ({ spec }) => spec.volumeMode ?? '<unset>' },
  ],
  deleteAnswersObject: true,
})

function defaultSpec(spec: PersistentVolumeSpec): void {
  spec.persistentVolumeReclaimPolicy ||= 'Retain'
  spec.volumeMode ??= 'Filesystem'
  roundAmounts(spec.capacity)
  defaultSource(spec)
}

/** Defaults of source fields. */
const sourceDefaults: Readonly<Partial<Record<keyof PersistentVolumeSpec, Readonly<Record<string, unknown>>>>> = {
  hostPath: { type: '' },
  rbd: { pool: 'rbd', user: 'admin', keyring: '/etc/ceph/keyring' },
  iscsi: { iscsiInterface: 'default' },
  azureDisk: { cachingMode: 'ReadWrite', fsType: 'ext4', readOnly: false, kind: 'Shared' },
  scaleIO: { storageMode: 'ThinProvisioned', fsType: 'xfs' },
}

function defaultSource(spec: PersistentVolumeSpec): void {
  for (const [name, defaults] of Object.entries(sourceDefaults)) {
    const source = spec[name as keyof PersistentVolumeSpec] as unknown as Record<string, unknown> | undefined
    if (source !== undefined) Object.assign(source, { ...defaults, ...source })
  }
}

const oldAnnotations: readonly (readonly [name: string, advice: string])[] = [
  [STORAGE_CLASS_ANNOTATION, 'deprecated since v1.8; use "storageClassName" attribute instead'],
  [MOUNT_OPTIONS_ANNOTATION, 'deprecated since v1.31; use "mountOptions" attribute instead'],
]

/** Sources with removed drivers, with upstream's names. */
const oldSources: readonly (readonly [
  source: keyof PersistentVolumeSpec,
  path: string,
  since: string,
  until: string,
])[] = [
  ['cephfs', 'cephfs', '1.28', '1.31'],
  ['photonPersistentDisk', 'photonPersistentDisk', '1.11', '1.16'],
  ['scaleIO', 'scaleIO', '1.16', '1.22'],
  ['storageos', 'storageOS', '1.22', '1.25'],
  ['glusterfs', 'glusterfs', '1.25', '1.26'],
  ['rbd', 'rbd', '1.28', '1.31'],
]

/** Deprecated node labels. */
const oldNodeLabels: ReadonlyMap<string, string> = new Map([
  ['beta.kubernetes.io/arch', 'deprecated since v1.14; use "kubernetes.io/arch" instead'],
  ['beta.kubernetes.io/os', 'deprecated since v1.14; use "kubernetes.io/os" instead'],
  ['failure-domain.beta.kubernetes.io/region', 'deprecated since v1.17; use "topology.kubernetes.io/region" instead'],
  ['failure-domain.beta.kubernetes.io/zone', 'deprecated since v1.17; use "topology.kubernetes.io/zone" instead'],
  ['beta.kubernetes.io/instance-type', 'deprecated since v1.17; use "node.kubernetes.io/instance-type" instead'],
  ['app.kubernetes.io/created-by', 'deprecated since v1.9'],
  ['scheduler.alpha.kubernetes.io/preferAvoidPods', 'deprecated since v1.22; use Taints and Tolerations instead'],
  ['node-role.kubernetes.io/master', 'use "node-role.kubernetes.io/control-plane" instead'],
])

function volumeWarnings({ metadata, spec }: PersistentVolume): string[] {
  const annotations = metadata.annotations ?? {}
  const recycled = spec.persistentVolumeReclaimPolicy === 'Recycle'
  const advice =
    'The Recycle reclaim policy is deprecated. Instead, the recommended approach is to use dynamic provisioning.'
  return [
    ...oldAnnotations
      .filter(([name]) => Object.hasOwn(annotations, name))
      .map(([name, text]) => `${fieldPath('metadata.annotations').key(name)}: ${text}`),
    ...(recycled ? [`spec.persistentVolumeReclaimPolicy: ${advice}`] : []),
    ...affinityWarnings(spec),
    ...oldSources
      .filter(([source]) => spec[source] !== undefined)
      .map(([, path, since, until]) => `spec.${path}: deprecated in v${since}, non-functional in v${until}+`),
  ]
}

function affinityWarnings({ nodeAffinity }: PersistentVolumeSpec): string[] {
  const terms = fieldPath('spec.nodeAffinity.required.nodeSelectorTerms')
  return (nodeAffinity?.required?.nodeSelectorTerms ?? []).flatMap(({ matchExpressions = [] }, at) =>
    matchExpressions.flatMap(({ key: label }, place) => {
      const text = oldNodeLabels.get(label)
      const path = terms.index(at).child('matchExpressions').index(place)
      return text === undefined ? [] : [`${path.child('key')}: ${label} is ${text}`]
    }),
  )
}
