/** Validates the spec of PersistentVolumeClaims, also in claim templates of pods and workloads. */
import type { PersistentVolumeClaimSpec, PersistentVolumeClaimTemplate, TypedObjectReference } from '#apis/core/v1.ts'
import { validateLabelSelector } from '#meta/label-selector.ts'
import { compareQuantities, parseQuantity, quantityOf } from '#meta/quantity.ts'
import { asJson, collectErrors, type FieldError, type FieldPath } from '#meta/validation/field-path.ts'
import { dns1123Label, dns1123Subdomain } from '#meta/validation/names.ts'
import { oneOf, requiredText, validateObjectName } from '#meta/validation/rules.ts'

import { validateTemplateMetadata } from '../../template-metadata.ts'
import { validateResourceQuantity } from '../containers/resources.ts'

/** Faults that an update may keep, because the old claim has them. */
export interface ClaimTolerance {
  readonly invalidSelectorValues?: boolean
  readonly invalidApiGroup?: boolean
}

const accessModes = ['ReadOnlyMany', 'ReadWriteMany', 'ReadWriteOnce', 'ReadWriteOncePod']

export function validateClaimSpec(
  path: FieldPath,
  spec: PersistentVolumeClaimSpec,
  tolerance: ClaimTolerance = {},
): FieldError[] {
  const { selector, storageClassName, volumeMode, volumeAttributesClassName } = spec
  const selectorRules = { invalidValues: tolerance.invalidSelectorValues === true }
  return collectErrors(
    (spec.accessModes ?? []).length === 0 && path.child('accessModes').required('at least 1 access mode is required'),
    validateLabelSelector(path.child('selector'), selector, selectorRules),
    validateAccessModes(path.child('accessModes'), spec.accessModes),
    validateStorage(path.child('resources').key('storage'), spec.resources?.requests?.storage),
    validateObjectName(path.child('storageClassName'), storageClassName),
    oneOf(path.child('volumeMode'), volumeMode, ['Block', 'Filesystem']),
    validateDataSources(path, spec, tolerance),
    validateObjectName(path.child('volumeAttributesClassName'), volumeAttributesClassName),
  )
}

function validateAccessModes(path: FieldPath, modes: readonly string[] = []): FieldError[] {
  const errors = modes
    .filter((mode) => !accessModes.includes(mode))
    .map((mode) => path.notSupported(asJson(mode), accessModes))
  const known = new Set(modes.filter((mode) => accessModes.includes(mode)))
  if (!known.has('ReadWriteOncePod') || known.size === 1) return errors
  return [...errors, path.forbidden('may not use ReadWriteOncePod with other access modes')]
}

function validateStorage(path: FieldPath, amount: string | undefined): FieldError[] {
  if (amount === undefined) return [path.required()]
  if (compareQuantities(parseQuantity(amount), quantityOf(0)) <= 0) {
    return [path.invalid(amount, 'must be greater than zero')]
  }
  return validateResourceQuantity(path, 'storage', amount)
}

function validateDataSources(
  path: FieldPath,
  spec: PersistentVolumeClaimSpec,
  tolerance: ClaimTolerance,
): FieldError[] {
  const { dataSource, dataSourceRef } = spec
  const errors = collectErrors(
    dataSource !== undefined && validateDataSource(path.child('dataSource'), dataSource, tolerance),
    dataSourceRef !== undefined && validateDataSource(path.child('dataSourceRef'), dataSourceRef, tolerance),
  )
  if (dataSource === undefined || dataSourceRef === undefined) return errors
  // Upstream intends to print `dataSource` here, which has no such field.
  const shown = asJson({})
  if ((dataSourceRef.namespace ?? '') !== '') {
    return [...errors, path.invalid(shown, 'may not be specified when dataSourceRef.namespace is specified')]
  }
  const same = (['apiGroup', 'kind', 'name'] as const).every((name) => dataSource[name] === dataSourceRef[name])
  return same ? errors : [...errors, path.invalid(shown, 'must match dataSourceRef')]
}

function validateDataSource(
  path: FieldPath,
  source: TypedObjectReference,
  { invalidApiGroup }: ClaimTolerance,
): FieldError[] {
  const { apiGroup, kind, name, namespace = '' } = source
  const group = apiGroup ?? ''
  return collectErrors(
    requiredText(path.child('name'), name),
    requiredText(path.child('kind'), kind),
    group === '' &&
      kind !== 'PersistentVolumeClaim' &&
      path.invalid(kind, "must be 'PersistentVolumeClaim' when referencing the default apiGroup"),
    group !== '' && invalidApiGroup !== true && path.child('apiGroup').check(group, dns1123Subdomain),
    namespace !== '' && path.child('namespace').check(namespace, dns1123Label),
  )
}

/** A claim template: only labels and annotations of its metadata are allowed. */
export function validateClaimTemplate(
  path: FieldPath,
  { metadata, spec }: PersistentVolumeClaimTemplate,
): FieldError[] {
  return [...validateTemplateMetadata(path.child('metadata'), metadata), ...validateClaimSpec(path.child('spec'), spec)]
}
