/** The rules of PersistentVolumes: hardly anything of one changes once it exists. */
import type { NodeSelectorTerm, PersistentVolume, PersistentVolumeSpec, VolumeNodeAffinity } from '#apis/core/v1.ts'
import type { RuleContext } from '#apiserver/registry/resource.ts'
import { deepCopy, semanticEqual } from '#meta/object.ts'
import { parseQuantity, quantitySign } from '#meta/quantity.ts'
import { differencesText } from '#meta/validation/differences.ts'
import {
  asJson,
  child,
  type FieldError,
  forbidden,
  invalid,
  key,
  notInSet,
  notSupported,
  required,
} from '#meta/validation/field-error.ts'
import { dns1123Subdomain, labelValue } from '#meta/validation/names.ts'
import { complaining, immutable } from '#meta/validation/rules.ts'
import { validateNodeSelector } from '#model/node-affinity.ts'
import { oneOf, validateObjectName } from '#model/pod-spec/checks.ts'
import { sortedAmounts, validateCapacity } from '#model/resource-lists.ts'
import { MOUNT_OPTIONS_ANNOTATION } from '#model/volumes.ts'

import { validateVolumeSource, volumeSourceOf } from './sources.ts'

const accessModes = ['ReadOnlyMany', 'ReadWriteMany', 'ReadWriteOnce', 'ReadWriteOncePod']
const reclaimPolicies = ['Delete', 'Recycle', 'Retain']

export function validateVolume(volume: PersistentVolume): FieldError[] {
  const { metadata, spec } = volume
  return [...validateVolumeSpec(spec, metadata.name ?? '', undefined), ...validateMountOptions(volume)]
}

export function validateVolumeUpdate(
  next: PersistentVolume,
  old: PersistentVolume,
  context: RuleContext,
): FieldError[] {
  const spec = validateVolumeSpec(next.spec, next.metadata.name ?? '', old.spec)
  return [
    ...spec,
    ...validateMountOptions(next),
    // Once more, as the causes of upstream's answer do.
    ...spec,
    ...validateSameSource(next.spec, old.spec),
    ...immutable('volumeMode', next.spec.volumeMode, old.spec.volumeMode),
    ...validateSameAffinity(next.spec, old.spec, context),
    ...(old.spec.volumeAttributesClassName !== undefined && next.spec.volumeAttributesClassName === undefined
      ? [forbidden('spec.volumeAttributesClassName', 'update from non-nil value to nil is forbidden')]
      : []),
  ]
}

function validateVolumeSpec(
  spec: PersistentVolumeSpec,
  name: string,
  old: PersistentVolumeSpec | undefined,
): FieldError[] {
  const { nodeAffinity, persistentVolumeReclaimPolicy: policy = '', volumeMode } = spec
  return [
    ...validateAccessModes('spec.accessModes', spec.accessModes),
    ...validateCapacities('spec.capacity', spec.capacity),
    ...(policy === '' ? [] : oneOf('spec.persistentVolumeReclaimPolicy', policy, reclaimPolicies)),
    ...(nodeAffinity === undefined ? [] : validateAffinity('spec.nodeAffinity', nodeAffinity, old?.nodeAffinity)),
    ...validateVolumeSource('spec', name, spec),
    ...validateRecycling(spec),
    ...validateObjectName('spec.storageClassName', spec.storageClassName),
    ...oneOf('spec.volumeMode', volumeMode, ['Block', 'Filesystem']),
    ...validateAttributesClass(spec),
  ]
}

function validateAccessModes(field: string, modes: readonly string[] = []): FieldError[] {
  if (modes.length === 0) return [required(field)]
  const known = new Set(modes.filter((mode) => accessModes.includes(mode)))
  return [
    ...modes.filter((mode) => !known.has(mode)).map((mode) => notInSet(field, asJson(mode), accessModes)),
    ...(known.has('ReadWriteOncePod') && known.size > 1
      ? [forbidden(field, 'may not use ReadWriteOncePod with other access modes')]
      : []),
  ]
}

function validateCapacities(field: string, capacity: Readonly<Record<string, string>> = {}): FieldError[] {
  const names = Object.keys(capacity)
  const isStorage = names.length === 1 && names[0] === 'storage'
  return [
    ...(names.length === 0 ? [required(field)] : []),
    ...(isStorage ? [] : [notSupported(field, names.length === 0 ? null : capacity, ['storage'])]),
    ...sortedAmounts(capacity).flatMap(([name, amount]) => {
      const path = key(field, name)
      const positive = quantitySign(parseQuantity(amount)) > 0
      return [
        ...validateCapacity(path, amount),
        ...(positive ? [] : [invalid(path, amount, 'must be greater than zero')]),
      ]
    }),
  ]
}

function termsOf(affinity: VolumeNodeAffinity | undefined): readonly NodeSelectorTerm[] {
  return affinity?.required?.nodeSelectorTerms ?? []
}

/** Values that are no label values may stay where they are. */
function validateAffinity(
  path: string,
  affinity: VolumeNodeAffinity,
  old: VolumeNodeAffinity | undefined,
): FieldError[] {
  const field = child(path, 'required')
  if (affinity.required === undefined) return [required(field, 'must specify required node constraints')]
  const values = termsOf(old).flatMap(({ matchExpressions = [] }) =>
    matchExpressions.flatMap((one) => one.values ?? []),
  )
  return validateNodeSelector(
    field,
    affinity.required,
    values.some((value) => labelValue(value).length > 0),
  )
}

/** Nobody wants the whole disk of a node wiped. */
function validateRecycling({ hostPath, persistentVolumeReclaimPolicy }: PersistentVolumeSpec): FieldError[] {
  if (hostPath === undefined || persistentVolumeReclaimPolicy !== 'Recycle' || !isRoot(hostPath.path)) return []
  const rule = "may not be 'recycle' for a hostPath mount of '/'"
  return [forbidden('spec.persistentVolumeReclaimPolicy', rule)]
}

/** Once `.` and `..` are worked out. */
function isRoot(path: string): boolean {
  let depth = 0
  for (const part of path.split('/')) {
    if (part === '..') depth = Math.max(depth - 1, 0)
    else if (part !== '' && part !== '.') depth++
  }
  return path.startsWith('/') && depth === 0
}

function validateAttributesClass({ volumeAttributesClassName: name, csi }: PersistentVolumeSpec): FieldError[] {
  if (name === undefined) return []
  const field = 'spec.volumeAttributesClassName'
  return [
    ...(name === ''
      ? [required(field, 'an empty string is disallowed')]
      : complaining(field, name, dns1123Subdomain(name))),
    ...(csi === undefined ? [required('spec.csi', 'has to be specified when using volumeAttributesClassName')] : []),
  ]
}

/** Sources that could be mounted with options when those were an annotation. */
const mountable = [
  'gcePersistentDisk',
  'awsElasticBlockStore',
  'glusterfs',
  'nfs',
  'rbd',
  'quobyte',
  'iscsi',
  'cinder',
  'cephfs',
  'azureFile',
  'vsphereVolume',
  'azureDisk',
  'photonPersistentDisk',
] as const

function validateMountOptions({ metadata, spec }: PersistentVolume): FieldError[] {
  if (mountable.some((name) => spec[name] !== undefined)) return []
  if (!Object.hasOwn(metadata.annotations ?? {}, MOUNT_OPTIONS_ANNOTATION)) return []
  const field = child('metadata.annotations', MOUNT_OPTIONS_ANNOTATION)
  return [forbidden(field, 'may not specify mount options for this volume type')]
}

/** A secret for expansion may be given later: there was none to give when the volume was made. */
function validateSameSource(next: PersistentVolumeSpec, old: PersistentVolumeSpec): FieldError[] {
  const [source, before] = [deepCopy(volumeSourceOf(next)), volumeSourceOf(old)]
  if (old.csi !== undefined && old.csi.controllerExpandSecretRef === undefined) {
    delete source.csi?.controllerExpandSecretRef
  }
  if (semanticEqual(source, before)) return []
  const rule = 'spec.persistentvolumesource is immutable after creation'
  return [forbidden('spec.persistentvolumesource', `${rule}\n${differencesText('spec', before, source)}`)]
}

/** Labels of nodes that have a stable name by now, which is all that may change in an affinity. */
const stableLabels: ReadonlyMap<string, string> = new Map([
  ['failure-domain.beta.kubernetes.io/zone', 'topology.kubernetes.io/zone'],
  ['failure-domain.beta.kubernetes.io/region', 'topology.kubernetes.io/region'],
  ['beta.kubernetes.io/os', 'kubernetes.io/os'],
  ['beta.kubernetes.io/arch', 'kubernetes.io/arch'],
  ['beta.kubernetes.io/instance-type', 'node.kubernetes.io/instance-type'],
])

function validateSameAffinity(
  next: PersistentVolumeSpec,
  old: PersistentVolumeSpec,
  context: RuleContext,
): FieldError[] {
  if (old.nodeAffinity === undefined || context.isEnabled('MutablePVNodeAffinity')) return []
  const renamed = deepCopy(old.nodeAffinity)
  for (const [at, term] of termsOf(renamed).entries()) {
    const nextTerm = termsOf(next.nodeAffinity)[at]
    for (const [place, one] of (term.matchExpressions ?? []).entries()) {
      const name = nextTerm?.matchExpressions?.[place]?.key
      if (name !== undefined && stableLabels.get(one.key) === name) one.key = name
    }
  }
  if (semanticEqual(next.nodeAffinity, renamed)) return []
  const rule = 'field is immutable, except for updating from beta label to GA'
  return [invalid('nodeAffinity', next.nodeAffinity ?? null, rule)]
}
