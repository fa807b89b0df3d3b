/** The rules of a PersistentVolumeClaim's spec, which are also those of the claims that pods and workloads make. */
import type { PersistentVolumeClaimSpec, PersistentVolumeClaimTemplate, TypedObjectReference } from '#apis/core/v1.ts'
import { validateLabelSelector } from '#meta/label-selector.ts'
import { compareQuantities, parseQuantity, quantityOf } from '#meta/quantity.ts'
import {
  asJson,
  child,
  type FieldError,
  forbidden,
  invalid,
  key,
  notSupported,
  required,
} from '#meta/validation/field-error.ts'
import { dns1123Label, dns1123Subdomain } from '#meta/validation/names.ts'
import { complaining } from '#meta/validation/rules.ts'

import { validateTemplateMetadata } from '../template-metadata.ts'
import { oneOf, requiredText, validateObjectName } from './checks.ts'
import { validateResourceQuantity } from './resources.ts'

/** What an update may keep because the old claim had it already. */
export interface ClaimTolerance {
  readonly invalidSelectorValues?: boolean
  readonly invalidApiGroup?: boolean
}

const accessModes = ['ReadOnlyMany', 'ReadWriteMany', 'ReadWriteOnce', 'ReadWriteOncePod']

export function validateClaimSpec(
  path: string,
  spec: PersistentVolumeClaimSpec,
  tolerance: ClaimTolerance = {},
): FieldError[] {
  const { selector, storageClassName, volumeMode, volumeAttributesClassName } = spec
  const selectorRules = { invalidValues: tolerance.invalidSelectorValues === true }
  return [
    ...((spec.accessModes ?? []).length === 0
      ? [required(child(path, 'accessModes'), 'at least 1 access mode is required')]
      : []),
    ...validateLabelSelector(child(path, 'selector'), selector, selectorRules),
    ...validateAccessModes(child(path, 'accessModes'), spec.accessModes),
    ...validateStorage(key(child(path, 'resources'), 'storage'), spec.resources?.requests?.storage),
    ...validateObjectName(child(path, 'storageClassName'), storageClassName),
    ...oneOf(child(path, 'volumeMode'), volumeMode, ['Block', 'Filesystem']),
    ...validateDataSources(path, spec, tolerance),
    ...validateObjectName(child(path, 'volumeAttributesClassName'), volumeAttributesClassName),
  ]
}

function validateAccessModes(field: string, modes: readonly string[] = []): FieldError[] {
  const errors = modes
    .filter((mode) => !accessModes.includes(mode))
    .map((mode) => notSupported(field, asJson(mode), accessModes))
  const known = new Set(modes.filter((mode) => accessModes.includes(mode)))
  if (!known.has('ReadWriteOncePod') || known.size === 1) return errors
  return [...errors, forbidden(field, 'may not use ReadWriteOncePod with other access modes')]
}

function validateStorage(field: string, amount: string | undefined): FieldError[] {
  if (amount === undefined) return [required(field)]
  if (compareQuantities(parseQuantity(amount), quantityOf(0)) <= 0) {
    return [invalid(field, amount, 'must be greater than zero')]
  }
  return validateResourceQuantity(field, 'storage', amount)
}

function validateDataSources(path: string, spec: PersistentVolumeClaimSpec, tolerance: ClaimTolerance): FieldError[] {
  const { dataSource, dataSourceRef } = spec
  const errors = [
    ...(dataSource === undefined ? [] : validateDataSource(child(path, 'dataSource'), dataSource, tolerance)),
    ...(dataSourceRef === undefined ? [] : validateDataSource(child(path, 'dataSourceRef'), dataSourceRef, tolerance)),
  ]
  if (dataSource === undefined || dataSourceRef === undefined) return errors
  // Upstream means to show the path of `dataSource`, which has no fields to show.
  const shown = asJson({})
  if ((dataSourceRef.namespace ?? '') !== '') {
    return [...errors, invalid(path, shown, 'may not be specified when dataSourceRef.namespace is specified')]
  }
  const same = (['apiGroup', 'kind', 'name'] as const).every((name) => dataSource[name] === dataSourceRef[name])
  return same ? errors : [...errors, invalid(path, shown, 'must match dataSourceRef')]
}

function validateDataSource(
  path: string,
  source: TypedObjectReference,
  { invalidApiGroup }: ClaimTolerance,
): FieldError[] {
  const { apiGroup, kind, name, namespace = '' } = source
  const group = apiGroup ?? ''
  const errors = [...requiredText(child(path, 'name'), name), ...requiredText(child(path, 'kind'), kind)]
  if (group === '' && kind !== 'PersistentVolumeClaim') {
    errors.push(invalid(path, kind, "must be 'PersistentVolumeClaim' when referencing the default apiGroup"))
  }
  if (group !== '' && invalidApiGroup !== true) {
    errors.push(...complaining(child(path, 'apiGroup'), group, dns1123Subdomain(group)))
  }
  if (namespace !== '') errors.push(...complaining(child(path, 'namespace'), namespace, dns1123Label(namespace)))
  return errors
}

/** A claim made for somebody: of its metadata only labels and annotations mean anything. */
export function validateClaimTemplate(path: string, { metadata, spec }: PersistentVolumeClaimTemplate): FieldError[] {
  return [
    ...validateTemplateMetadata(child(path, 'metadata'), metadata),
    ...validateClaimSpec(child(path, 'spec'), spec),
  ]
}
