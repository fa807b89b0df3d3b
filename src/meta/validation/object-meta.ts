/** The rules of `metadata`, on create and on update, in the order in which upstream reports them. */
import { byteLength, compareText, goStrings } from '#lib/go-text.ts'

import { kindKey, kindOf } from '../kind.ts'
import { type ManagedFieldsEntry, type ObjectMeta, type OwnerReference } from '../object.ts'
import { asJson, child, type FieldError, forbidden, index, invalid, required, tooLong } from './field-error.ts'
import { nameIsLabel, type NameRule, printableText, qualifiedName } from './names.ts'
import { complaining, immutable, nonNegative, validateAnnotations, validateLabels } from './rules.ts'

const MANAGER_LIMIT_BYTES = 128
const SUBRESOURCE_LIMIT_BYTES = 256

export interface ObjectMetaRules {
  readonly namespaced: boolean
  readonly name: NameRule
  /** Where the metadata is. Default: `metadata`. */
  readonly path?: string
}

/** For a new object, after its name has been generated and its namespace filled in. */
export function validateObjectMeta(meta: ObjectMeta, rules: ObjectMetaRules): FieldError[] {
  const { namespaced, path = 'metadata' } = rules
  return [
    ...validateNames(meta, rules, path),
    ...validateNamespace(meta.namespace ?? '', namespaced, child(path, 'namespace')),
    ...nonNegative(child(path, 'generation'), meta.generation),
    ...validateLabels(child(path, 'labels'), meta.labels),
    ...validateAnnotations(child(path, 'annotations'), meta.annotations),
    ...validateOwnerReferences(child(path, 'ownerReferences'), meta.ownerReferences),
    ...validateFinalizers(child(path, 'finalizers'), meta.finalizers),
    ...validateManagedFields(child(path, 'managedFields'), meta.managedFields),
  ]
}

/** What never changes in the life of an object, and what a Go value has instead of nothing. */
const fixed: readonly (readonly [keyof ObjectMeta, ''?])[] = [
  ['name', ''],
  ['namespace', ''],
  ['uid', ''],
  ['creationTimestamp'],
  ['deletionTimestamp'],
  ['deletionGracePeriodSeconds'],
]

/** For a change of an object; `next` must carry what the server has filled in by then, its resourceVersion included. */
export function validateObjectMetaUpdate(next: ObjectMeta, old: ObjectMeta, path = 'metadata'): FieldError[] {
  const errors: FieldError[] = []
  if (old.deletionTimestamp !== undefined) {
    errors.push(...validateNoNewFinalizers(child(path, 'finalizers'), next.finalizers, old.finalizers))
  }
  if ((next.resourceVersion ?? '') === '') {
    errors.push(invalid(child(path, 'resourceVersion'), '', 'must be specified for an update'))
  }
  if ((next.generation ?? 0) < (old.generation ?? 0)) {
    errors.push(invalid(child(path, 'generation'), next.generation ?? 0, 'must not be decremented'))
  }
  return [
    ...errors,
    ...fixed.flatMap(([field, zero]) => immutable(child(path, field), next[field] ?? zero, old[field] ?? zero)),
    ...validateLabels(child(path, 'labels'), next.labels),
    ...validateAnnotations(child(path, 'annotations'), next.annotations),
    ...validateOwnerReferences(child(path, 'ownerReferences'), next.ownerReferences),
    ...validateManagedFields(child(path, 'managedFields'), next.managedFields),
  ]
}

export function validateOwnerReferences(field: string, owners: readonly OwnerReference[] = []): FieldError[] {
  const errors: FieldError[] = []
  let controller = ''
  for (const owner of owners) {
    errors.push(...validateOwnerReference(field, owner))
    if (owner.controller !== true) continue
    const name = `${owner.kind}/${owner.name}`
    if (controller === '') {
      controller = name
      continue
    }
    const found = `Found "true" in references for ${controller} and ${name}`
    errors.push(invalid(field, owners, `Only one reference can have Controller set to true. ${found}`))
  }
  return errors
}

export function validateFinalizers(field: string, finalizers: readonly string[] = []): FieldError[] {
  const errors = finalizers.flatMap((finalizer) => complaining(field, finalizer, qualifiedName(finalizer)))
  if (finalizers.includes('orphan') && finalizers.includes('foregroundDeletion')) {
    errors.push(invalid(field, finalizers, 'finalizer orphan and foregroundDeletion cannot be both set'))
  }
  return errors
}

const standardFinalizers: readonly string[] = ['kubernetes', 'orphan', 'foregroundDeletion']

/** Whoever waits for an object to go says so under a domain of its own; only a few names are everybody's. */
export function validateFinalizerName(field: string, finalizer: string): FieldError[] {
  if (finalizer.includes('/') || standardFinalizers.includes(finalizer)) return []
  return [invalid(field, finalizer, 'name is neither a standard finalizer name nor is it fully qualified')]
}

/** An object on its way out may lose finalizers but not gain any. */
export function validateNoNewFinalizers(
  field: string,
  next: readonly string[] = [],
  old: readonly string[] = [],
): FieldError[] {
  const added = [...new Set(next).difference(new Set(old))].sort(compareText)
  if (added.length === 0) return []
  const rule = 'no new finalizers can be added if the object is being deleted'
  return [forbidden(field, `${rule}, found new finalizers ${goStrings(added)}`)]
}

/** Also the rule for the `fieldManager` of a request. */
export function validateFieldManager(field: string, manager: string): FieldError[] {
  const errors = byteLength(manager) > MANAGER_LIMIT_BYTES ? [tooLong(field, MANAGER_LIMIT_BYTES)] : []
  return [...errors, ...complaining(field, manager, printableText(manager))]
}

export function validateManagedFields(field: string, entries: readonly ManagedFieldsEntry[] = []): FieldError[] {
  return entries.flatMap((entry, at) => {
    const path = index(field, at)
    const errors: FieldError[] = []
    if (entry.operation !== 'Apply' && entry.operation !== 'Update') {
      errors.push(invalid(child(path, 'operation'), asJson(entry.operation ?? ''), 'must be `Apply` or `Update`'))
    }
    if ((entry.fieldsType ?? '') !== '' && entry.fieldsType !== 'FieldsV1') {
      errors.push(invalid(child(path, 'fieldsType'), entry.fieldsType, 'must be `FieldsV1`'))
    }
    errors.push(...validateFieldManager(child(path, 'manager'), entry.manager ?? ''))
    if (byteLength(entry.subresource ?? '') > SUBRESOURCE_LIMIT_BYTES) {
      errors.push(tooLong(child(path, 'subresource'), SUBRESOURCE_LIMIT_BYTES))
    }
    return errors
  })
}

function validateNames(meta: ObjectMeta, rules: ObjectMetaRules, path: string): FieldError[] {
  const { name = '', generateName = '' } = meta
  const errors =
    generateName === '' ? [] : complaining(child(path, 'generateName'), generateName, rules.name(generateName, true))
  if (name === '') return [...errors, required(child(path, 'name'), 'name or generateName is required')]
  return [...errors, ...complaining(child(path, 'name'), name, rules.name(name, false))]
}

function validateNamespace(namespace: string, namespaced: boolean, field: string): FieldError[] {
  if (!namespaced) return namespace === '' ? [] : [forbidden(field, 'not allowed on this type')]
  if (namespace === '') return [required(field)]
  return complaining(field, namespace, nameIsLabel(namespace, false))
}

function validateOwnerReference(field: string, owner: OwnerReference): FieldError[] {
  const gvk = kindOf(owner)
  const errors: FieldError[] = []
  if (gvk.version === '') {
    errors.push(invalid(child(field, 'apiVersion'), owner.apiVersion ?? '', 'version must not be empty'))
  }
  for (const name of ['kind', 'name'] as const) {
    if ((owner[name] ?? '') === '') errors.push(invalid(child(field, name), '', 'must not be empty'))
  }
  if ((owner.uid ?? '') === '') errors.push(invalid(child(field, 'uid'), asJson(''), 'must not be empty'))
  // Events are many and short-lived; owning anything would make the garbage collector watch them.
  if (kindKey(gvk) === '/v1, Kind=Event') {
    errors.push(invalid(field, owner, `${kindKey(gvk)} is disallowed from being an owner`))
  }
  return errors
}
