/** Validates PersistentVolumes; hardly any field may change. */
import type { NodeSelectorTerm, PersistentVolume, PersistentVolumeSpec, VolumeNodeAffinity } from '#apis/core/v1.ts'
import type { RuleContext } from '#apiserver/registry/resource.ts'
import { deepCopy, semanticEqual } from '#meta/object.ts'
import { parseQuantity, quantitySign } from '#meta/quantity.ts'
import { differencesText } from '#meta/validation/differences.ts'
import { asJson, collectErrors, type FieldError, fieldPath, type FieldPath } from '#meta/validation/field-path.ts'
import { dns1123Subdomain, labelValue } from '#meta/validation/names.ts'
import { immutable, oneOf, validateObjectName } from '#meta/validation/rules.ts'
import { validateNodeSelector } from '#model/nodes/affinity.ts'
import { sortedAmounts, validateCapacity } from '#model/resource-lists.ts'
import { MOUNT_OPTIONS_ANNOTATION } from '#model/volumes/volumes.ts'

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
  return collectErrors(
    spec,
    validateMountOptions(next),
    // Repeated, as in the causes of upstream's answer.
    spec,
    validateSameSource(next.spec, old.spec),
    immutable(fieldPath('volumeMode'), next.spec.volumeMode, old.spec.volumeMode),
    validateSameAffinity(next.spec, old.spec, context),
    old.spec.volumeAttributesClassName !== undefined &&
      next.spec.volumeAttributesClassName === undefined &&
      fieldPath('spec.volumeAttributesClassName').forbidden('update from non-nil value to nil is forbidden'),
  )
}

function validateVolumeSpec(
  spec: PersistentVolumeSpec,
  name: string,
  old: PersistentVolumeSpec | undefined,
): FieldError[] {
  const { nodeAffinity, persistentVolumeReclaimPolicy: policy = '', volumeMode } = spec
  return collectErrors(
    validateAccessModes(fieldPath('spec.accessModes'), spec.accessModes),
    validateCapacities(fieldPath('spec.capacity'), spec.capacity),
    policy !== '' && oneOf(fieldPath('spec.persistentVolumeReclaimPolicy'), policy, reclaimPolicies),
    nodeAffinity !== undefined && validateAffinity(fieldPath('spec.nodeAffinity'), nodeAffinity, old?.nodeAffinity),
    validateVolumeSource(fieldPath('spec'), name, spec),
    validateRecycling(spec),
    validateObjectName(fieldPath('spec.storageClassName'), spec.storageClassName),
    oneOf(fieldPath('spec.volumeMode'), volumeMode, ['Block', 'Filesystem']),
    validateAttributesClass(spec),
  )
}

function validateAccessModes(path: FieldPath, modes: readonly string[] = []): FieldError[] {
  if (modes.length === 0) return [path.required()]
  const known = new Set(modes.filter((mode) => accessModes.includes(mode)))
  return collectErrors(
    modes.filter((mode) => !known.has(mode)).map((mode) => path.notInSet(asJson(mode), accessModes)),
    known.has('ReadWriteOncePod') &&
      known.size > 1 &&
      path.forbidden('may not use ReadWriteOncePod with other access modes'),
  )
}

function validateCapacities(field: FieldPath, capacity: Readonly<Record<string, string>> = {}): FieldError[] {
  const names = Object.keys(capacity)
  const isStorage = names.length === 1 && names[0] === 'storage'
  return collectErrors(
    names.length === 0 && field.required(),
    !isStorage && field.notSupported(names.length === 0 ? null : capacity, ['storage']),
    sortedAmounts(capacity).flatMap(([name, amount]) => {
      const path = field.key(name)
      const positive = quantitySign(parseQuantity(amount)) > 0
      return collectErrors(
        validateCapacity(path, amount),
        !positive && path.invalid(amount, 'must be greater than zero'),
      )
    }),
  )
}

function termsOf(affinity: VolumeNodeAffinity | undefined): readonly NodeSelectorTerm[] {
  return affinity?.required?.nodeSelectorTerms ?? []
}

/** Old values that are no label values may stay. */
function validateAffinity(
  path: FieldPath,
  affinity: VolumeNodeAffinity,
  old: VolumeNodeAffinity | undefined,
): FieldError[] {
  const field = path.child('required')
  if (affinity.required === undefined) return [field.required('must specify required node constraints')]
  const values = termsOf(old).flatMap(({ matchExpressions = [] }) =>
    matchExpressions.flatMap((one) => one.values ?? []),
  )
  return validateNodeSelector(
    field,
    affinity.required,
    values.some((value) => labelValue(value).length > 0),
  )
}

/** Protects the root of a node's file system from being wiped. */
function validateRecycling({ hostPath, persistentVolumeReclaimPolicy }: PersistentVolumeSpec): FieldError[] {
  if (hostPath === undefined || persistentVolumeReclaimPolicy !== 'Recycle' || !isRoot(hostPath.path)) return []
  const rule = "may not be 'recycle' for a hostPath mount of '/'"
  return [fieldPath('spec.persistentVolumeReclaimPolicy').forbidden(rule)]
}

/** After resolving `.` and `..`. */
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
  const field = fieldPath('spec.volumeAttributesClassName')
  return collectErrors(
    name === '' ? field.required('an empty string is disallowed') : field.check(name, dns1123Subdomain),
    csi === undefined && fieldPath('spec.csi').required('has to be specified when using volumeAttributesClassName'),
  )
}

/** Sources that supported the mount option annotation. */
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
  const field = fieldPath('metadata.annotations').child(MOUNT_OPTIONS_ANNOTATION)
  return [field.forbidden('may not specify mount options for this volume type')]
}

/** A secret for expansion may be added later. */
function validateSameSource(next: PersistentVolumeSpec, old: PersistentVolumeSpec): FieldError[] {
  const [source, before] = [deepCopy(volumeSourceOf(next)), volumeSourceOf(old)]
  if (old.csi !== undefined && old.csi.controllerExpandSecretRef === undefined) {
    delete source.csi?.controllerExpandSecretRef
  }
  if (semanticEqual(source, before)) return []
  const rule = 'spec.persistentvolumesource is immutable after creation'
  return [fieldPath('spec.persistentvolumesource').forbidden(`${rule}\n${differencesText('spec', before, source)}`)]
}

/** Deprecated node labels with stable names; only these may change in an affinity. */
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
  return [fieldPath('nodeAffinity').invalid(next.nodeAffinity ?? null, rule)]
}
