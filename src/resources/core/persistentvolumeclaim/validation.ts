/** The rules of claims; those of a claim's spec alone are shared with pods and workloads. */
import type { PersistentVolumeClaim, PersistentVolumeClaimSpec } from '#apis/core/v1.ts'
import { validateLabelSelector } from '#meta/label-selector.ts'
import { deepCopy, semanticEqual } from '#meta/object.ts'
import { compareQuantities, parseQuantity, type Quantity, quantityOf } from '#meta/quantity.ts'
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
import { qualifiedName } from '#meta/validation/names.ts'
import { complaining, immutable } from '#meta/validation/rules.ts'
import { validateClaimSpec } from '#model/pod-spec/claim-spec.ts'
import { isNativeResource } from '#model/pod-spec/resource-names.ts'
import { validateResourceQuantity } from '#model/pod-spec/resources.ts'
import { amountOf, sortedAmounts, validateCapacity } from '#model/resource-lists.ts'
import { alignDataSources, STORAGE_CLASS_ANNOTATION } from '#model/volumes.ts'

export function validateClaim({ spec }: PersistentVolumeClaim, old?: PersistentVolumeClaim): FieldError[] {
  const { dataSource, dataSourceRef, selector } = old?.spec ?? {}
  const hadGroup = [dataSource, dataSourceRef].some((source) => (source?.apiGroup ?? null) !== null)
  return validateClaimSpec('spec', spec, {
    invalidApiGroup: hadGroup,
    invalidSelectorValues: validateLabelSelector('', selector).length > 0,
  })
}

export function validateClaimUpdate(next: PersistentVolumeClaim, old: PersistentVolumeClaim): FieldError[] {
  return [
    ...validateClaim(next, old),
    ...validateSameSpec(next, old),
    ...validateSize(next, old),
    ...immutable('volumeMode', next.spec.volumeMode, old.spec.volumeMode),
    ...validateAttributesClass(next, old),
  ]
}

/** Claims are immutable, or quotas could be gamed; what a bound one may change is taken out before comparing. */
function validateSameSpec(next: PersistentVolumeClaim, old: PersistentVolumeClaim): FieldError[] {
  const wanted = deepCopy(next.spec)
  const before = deepCopy(old.spec)
  // A claim of an older release has the old field of its source only, and must not look changed for that.
  alignDataSources(before)
  const errors = settleClass(wanted, next, old)
  if ((before.volumeName ?? '') === '') copyField(before, wanted, 'volumeName')
  if (next.status?.phase === 'Bound') {
    const storage = amountOf(before.resources?.requests, 'storage')
    if (wanted.resources?.requests !== undefined && storage !== undefined)
      wanted.resources.requests['storage'] = storage
    copyField(wanted, before, 'volumeAttributesClassName')
  }
  if (semanticEqual(wanted, before)) return errors
  const rule =
    'spec is immutable after creation except resources.requests and volumeAttributesClassName for bound claims'
  return [...errors, forbidden('spec', `${rule}\n${differencesText('spec', before, wanted)}`)]
}

function copyField(
  to: PersistentVolumeClaimSpec,
  from: PersistentVolumeClaimSpec,
  name: 'volumeName' | 'volumeAttributesClassName',
): void {
  const value = from[name]
  if (value === undefined) delete to[name]
  else to[name] = value
}

/** A class may be given where there was none, and move from the annotation to the field. */
function settleClass(
  wanted: PersistentVolumeClaimSpec,
  { metadata }: PersistentVolumeClaim,
  { metadata: oldMetadata, spec: before }: PersistentVolumeClaim,
): FieldError[] {
  const annotation = metadata.annotations?.[STORAGE_CLASS_ANNOTATION]
  const oldAnnotation = oldMetadata.annotations?.[STORAGE_CLASS_ANNOTATION]
  const given = before.storageClassName === undefined && wanted.storageClassName !== undefined
  const moved = given && wanted.storageClassName === oldAnnotation
  if (given && (oldAnnotation === undefined || moved)) delete wanted.storageClassName
  if (moved && (annotation === undefined || annotation === oldAnnotation)) return []
  if ((annotation ?? '') === (oldAnnotation ?? '')) return []
  return [invalid(child('metadata.annotations', STORAGE_CLASS_ANNOTATION), annotation ?? '', 'field is immutable')]
}

function storageOf(list: Readonly<Record<string, string>> | undefined): Quantity {
  const amount = amountOf(list, 'storage')
  return amount === undefined ? quantityOf(0) : parseQuantity(amount)
}

/** Less may be asked for after an expansion that failed, but not less than there is. */
function validateSize(next: PersistentVolumeClaim, old: PersistentVolumeClaim): FieldError[] {
  const size = storageOf(next.spec.resources?.requests)
  if (compareQuantities(size, storageOf(old.spec.resources?.requests)) >= 0) return []
  if (compareQuantities(size, storageOf(old.status?.capacity)) > 0) return []
  return [forbidden('spec.resources.requests.storage', 'field can not be less than status.capacity')]
}

function validateAttributesClass(next: PersistentVolumeClaim, old: PersistentVolumeClaim): FieldError[] {
  const name = next.spec.volumeAttributesClassName
  const applied = old.status?.currentVolumeAttributesClassName !== undefined
  if (!applied || name === old.spec.volumeAttributesClassName || (name ?? '') !== '') return []
  const value = name === undefined ? 'nil' : 'empty string'
  const rule = `update to ${value} is forbidden when status.currentVolumeAttributesClassName is not nil`
  return [forbidden('spec.volumeAttributesClassName', rule)]
}

const resizeStates = [
  'ControllerResizeInProgress',
  'ControllerResizeInfeasible',
  'NodeResizePending',
  'NodeResizeInProgress',
  'NodeResizeInfeasible',
]

export function validateClaimStatus({ spec, status }: PersistentVolumeClaim): FieldError[] {
  return [
    ...((spec.accessModes ?? []).length === 0 ? [required('Spec.accessModes')] : []),
    ...sortedAmounts(status?.capacity).flatMap(([name, amount]) =>
      validateCapacity(key('status.capacity', name), amount),
    ),
    ...sortedAmounts(status?.allocatedResourceStatuses).flatMap(([name, state]) => [
      ...validateResourceKey('status.allocatedResourceStatuses', name),
      ...(resizeStates.includes(state)
        ? []
        : [notInSet('status.allocatedResourceStatuses', asJson(name), resizeStates)]),
    ]),
    ...sortedAmounts(status?.allocatedResources).flatMap(([name, amount]) => validateAllocated(name, amount)),
  ]
}

function validateAllocated(name: string, amount: string): FieldError[] {
  const errors = validateResourceKey('status.allocatedResources', name)
  if (errors.length > 0) return errors
  const field = key('status.allocatedResources', name)
  const capacityErrors = validateCapacity(field, amount)
  return capacityErrors.length > 0 ? capacityErrors : validateResourceQuantity(field, 'storage', amount)
}

/** Storage, or something of a driver's own. */
function validateResourceKey(field: string, name: string): FieldError[] {
  const errors = complaining(field, name, qualifiedName(name))
  if (errors.length > 0 || name === 'storage' || !isNativeResource(name)) return errors
  return [notSupported(field, name, ['storage'])]
}
