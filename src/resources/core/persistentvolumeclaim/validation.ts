/** Validates PersistentVolumeClaims; pods and workloads share the rules of the spec. */
import type { PersistentVolumeClaim, PersistentVolumeClaimSpec } from '#apis/core/v1.ts'
import { validateLabelSelector } from '#meta/label-selector.ts'
import { deepCopy, semanticEqual } from '#meta/object.ts'
import { compareQuantities, parseQuantity, type Quantity, quantityOf } from '#meta/quantity.ts'
import { differencesText } from '#meta/validation/differences.ts'
import { asJson, collectErrors, type FieldError, fieldPath, type FieldPath } from '#meta/validation/field-path.ts'
import { qualifiedName } from '#meta/validation/names.ts'
import { immutable } from '#meta/validation/rules.ts'
import { isNativeResource } from '#model/pod-spec/containers/resource-names.ts'
import { validateResourceQuantity } from '#model/pod-spec/containers/resources.ts'
import { validateClaimSpec } from '#model/pod-spec/volumes/claim-spec.ts'
import { amountOf, sortedAmounts, validateCapacity } from '#model/resource-lists.ts'
import { alignDataSources, STORAGE_CLASS_ANNOTATION } from '#model/volumes/volumes.ts'

export function validateClaim({ spec }: PersistentVolumeClaim, old?: PersistentVolumeClaim): FieldError[] {
  const { dataSource, dataSourceRef, selector } = old?.spec ?? {}
  const hadGroup = [dataSource, dataSourceRef].some((source) => (source?.apiGroup ?? null) !== null)
  return validateClaimSpec(fieldPath('spec'), spec, {
    invalidApiGroup: hadGroup,
    invalidSelectorValues: validateLabelSelector(fieldPath(''), selector).length > 0,
  })
}

export function validateClaimUpdate(next: PersistentVolumeClaim, old: PersistentVolumeClaim): FieldError[] {
  return [
    ...validateClaim(next, old),
    ...validateSameSpec(next, old),
    ...validateSize(next, old),
    ...immutable(fieldPath('volumeMode'), next.spec.volumeMode, old.spec.volumeMode),
    ...validateAttributesClass(next, old),
  ]
}

/** The spec is immutable for the sake of quotas; mutable fields of a bound claim are removed before the comparison. */
function validateSameSpec(next: PersistentVolumeClaim, old: PersistentVolumeClaim): FieldError[] {
  const wanted = deepCopy(next.spec)
  const before = deepCopy(old.spec)
  // A claim of an older release has only dataSource, which must not count as a change.
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
  return [...errors, fieldPath('spec').forbidden(`${rule}\n${differencesText('spec', before, wanted)}`)]
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

/** A class may be set if there was none, and move from the annotation to the field. */
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
  return [
    fieldPath('metadata.annotations')
      .child(STORAGE_CLASS_ANNOTATION)
      .invalid(annotation ?? '', 'field is immutable'),
  ]
}

function storageOf(list: Readonly<Record<string, string>> | undefined): Quantity {
  const amount = amountOf(list, 'storage')
  return amount === undefined ? quantityOf(0) : parseQuantity(amount)
}

/** A smaller request is allowed after a failed expansion, but not below the capacity. */
function validateSize(next: PersistentVolumeClaim, old: PersistentVolumeClaim): FieldError[] {
  const size = storageOf(next.spec.resources?.requests)
  if (compareQuantities(size, storageOf(old.spec.resources?.requests)) >= 0) return []
  if (compareQuantities(size, storageOf(old.status?.capacity)) > 0) return []
  return [fieldPath('spec.resources.requests.storage').forbidden('field can not be less than status.capacity')]
}

function validateAttributesClass(next: PersistentVolumeClaim, old: PersistentVolumeClaim): FieldError[] {
  const name = next.spec.volumeAttributesClassName
  const applied = old.status?.currentVolumeAttributesClassName !== undefined
  if (!applied || name === old.spec.volumeAttributesClassName || (name ?? '') !== '') return []
  const value = name === undefined ? 'nil' : 'empty string'
  const rule = `update to ${value} is forbidden when status.currentVolumeAttributesClassName is not nil`
  return [fieldPath('spec.volumeAttributesClassName').forbidden(rule)]
}

const resizeStates = [
  'ControllerResizeInProgress',
  'ControllerResizeInfeasible',
  'NodeResizePending',
  'NodeResizeInProgress',
  'NodeResizeInfeasible',
]

export function validateClaimStatus({ spec, status }: PersistentVolumeClaim): FieldError[] {
  return collectErrors(
    (spec.accessModes ?? []).length === 0 && fieldPath('Spec.accessModes').required(),
    sortedAmounts(status?.capacity).flatMap(([name, amount]) =>
      validateCapacity(fieldPath('status.capacity').key(name), amount),
    ),
    sortedAmounts(status?.allocatedResourceStatuses).flatMap(([name, state]) =>
      collectErrors(
        validateResourceKey(fieldPath('status.allocatedResourceStatuses'), name),
        !resizeStates.includes(state) &&
          fieldPath('status.allocatedResourceStatuses').notInSet(asJson(name), resizeStates),
      ),
    ),
    sortedAmounts(status?.allocatedResources).flatMap(([name, amount]) => validateAllocated(name, amount)),
  )
}

function validateAllocated(name: string, amount: string): FieldError[] {
  const errors = validateResourceKey(fieldPath('status.allocatedResources'), name)
  if (errors.length > 0) return errors
  const field = fieldPath('status.allocatedResources').key(name)
  const capacityErrors = validateCapacity(field, amount)
  return capacityErrors.length > 0 ? capacityErrors : validateResourceQuantity(field, 'storage', amount)
}

/** Storage, or a driver-specific resource. */
function validateResourceKey(path: FieldPath, name: string): FieldError[] {
  const errors = path.check(name, qualifiedName)
  if (errors.length > 0 || name === 'storage' || !isNativeResource(name)) return errors
  return [path.notSupported(name, ['storage'])]
}
