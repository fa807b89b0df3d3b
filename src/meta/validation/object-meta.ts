/** Validates `metadata` on create and update, in upstream's order. */
import { byteLength, compareText, goStrings } from '#lib/go/text.ts'

import { kindKey, kindOf } from '../kind.ts'
import { type ManagedFieldsEntry, type ObjectMeta, type OwnerReference } from '../object.ts'
import { asJson, collectErrors, type FieldError, fieldPath, type FieldPath } from './field-path.ts'
import { nameIsLabel, type NameRule, printableText, qualifiedName } from './names.ts'
import { immutable, nonNegative, validateAnnotations, validateLabels } from './rules.ts'

const MANAGER_LIMIT_BYTES = 128
const SUBRESOURCE_LIMIT_BYTES = 256

export interface ObjectMetaRules {
  readonly namespaced: boolean
  readonly name: NameRule
  /** The path of the metadata; `metadata` by default. */
  readonly path?: FieldPath
}

/** For a new object, after its name was generated and its namespace set. */
export function validateObjectMeta(meta: ObjectMeta, rules: ObjectMetaRules): FieldError[] {
  const { namespaced, path = fieldPath('metadata') } = rules
  return [
    ...validateNames(meta, rules, path),
    ...validateNamespace(meta.namespace ?? '', namespaced, path.child('namespace')),
    ...nonNegative(path.child('generation'), meta.generation),
    ...validateLabels(path.child('labels'), meta.labels),
    ...validateAnnotations(path.child('annotations'), meta.annotations),
    ...validateOwnerReferences(path.child('ownerReferences'), meta.ownerReferences),
    ...validateFinalizers(path.child('finalizers'), meta.finalizers),
    ...validateManagedFields(path.child('managedFields'), meta.managedFields),
  ]
}

/** Immutable fields, with Go's zero values. */
const fixed: readonly (readonly [keyof ObjectMeta, ''?])[] = [
  ['name', ''],
  ['namespace', ''],
  ['uid', ''],
  ['creationTimestamp'],
  ['deletionTimestamp'],
  ['deletionGracePeriodSeconds'],
]

/** For an update; `next` must contain the fields that the server has set, including resourceVersion. */
export function validateObjectMetaUpdate(
  next: ObjectMeta,
  old: ObjectMeta,
  path: FieldPath = fieldPath('metadata'),
): FieldError[] {
  return collectErrors(
    old.deletionTimestamp !== undefined &&
      validateNoNewFinalizers(path.child('finalizers'), next.finalizers, old.finalizers),
    (next.resourceVersion ?? '') === '' && path.child('resourceVersion').invalid('', 'must be specified for an update'),
    (next.generation ?? 0) < (old.generation ?? 0) &&
      path.child('generation').invalid(next.generation ?? 0, 'must not be decremented'),
    fixed.flatMap(([field, zero]) => immutable(path.child(field), next[field] ?? zero, old[field] ?? zero)),
    validateLabels(path.child('labels'), next.labels),
    validateAnnotations(path.child('annotations'), next.annotations),
    validateOwnerReferences(path.child('ownerReferences'), next.ownerReferences),
    validateManagedFields(path.child('managedFields'), next.managedFields),
  )
}

export function validateOwnerReferences(path: FieldPath, owners: readonly OwnerReference[] = []): FieldError[] {
  const errors: FieldError[] = []
  let controller = ''
  for (const owner of owners) {
    errors.push(...validateOwnerReference(path, owner))
    if (owner.controller !== true) continue
    const name = `${owner.kind}/${owner.name}`
    if (controller === '') {
      controller = name
      continue
    }
    const found = `Found "true" in references for ${controller} and ${name}`
    errors.push(path.invalid(owners, `Only one reference can have Controller set to true. ${found}`))
  }
  return errors
}

export function validateFinalizers(path: FieldPath, finalizers: readonly string[] = []): FieldError[] {
  const errors: FieldError[] = []
  for (const finalizer of finalizers) {
    for (const complaint of qualifiedName(finalizer)) errors.push(path.invalid(finalizer, complaint))
  }
  if (finalizers.includes('orphan') && finalizers.includes('foregroundDeletion')) {
    errors.push(path.invalid(finalizers, 'finalizer orphan and foregroundDeletion cannot be both set'))
  }
  return errors
}

const standardFinalizers: readonly string[] = ['kubernetes', 'orphan', 'foregroundDeletion']

/** A finalizer has a domain, except for a few standard names. */
export function validateFinalizerName(path: FieldPath, finalizer: string): FieldError[] {
  if (isFinalizerName(finalizer)) return []
  return [path.invalid(finalizer, 'name is neither a standard finalizer name nor is it fully qualified')]
}

export function validateFinalizerNames(path: FieldPath, finalizers: readonly string[] = []): FieldError[] {
  const errors: FieldError[] = []
  for (let at = 0; at < finalizers.length; at++) {
    const finalizer = finalizers[at] as string
    if (!isFinalizerName(finalizer)) errors.push(...validateFinalizerName(path.index(at), finalizer))
  }
  return errors
}

function isFinalizerName(finalizer: string): boolean {
  return finalizer.includes('/') || standardFinalizers.includes(finalizer)
}

/** An object being deleted may lose finalizers but not gain any. */
export function validateNoNewFinalizers(
  path: FieldPath,
  next: readonly string[] = [],
  old: readonly string[] = [],
): FieldError[] {
  const added = [...new Set(next).difference(new Set(old))].sort(compareText)
  if (added.length === 0) return []
  const rule = 'no new finalizers can be added if the object is being deleted'
  return [path.forbidden(`${rule}, found new finalizers ${goStrings(added)}`)]
}

/** Also validates the `fieldManager` of a request. */
export function validateFieldManager(path: FieldPath, manager: string): FieldError[] {
  const errors = byteLength(manager) > MANAGER_LIMIT_BYTES ? [path.tooLong(MANAGER_LIMIT_BYTES)] : []
  return [...errors, ...path.check(manager, printableText)]
}

export function validateManagedFields(path: FieldPath, entries: readonly ManagedFieldsEntry[] = []): FieldError[] {
  return path.each(entries, (path, entry) => {
    return collectErrors(
      entry.operation !== 'Apply' &&
        entry.operation !== 'Update' &&
        path.child('operation').invalid(asJson(entry.operation ?? ''), 'must be `Apply` or `Update`'),
      (entry.fieldsType ?? '') !== '' &&
        entry.fieldsType !== 'FieldsV1' &&
        path.child('fieldsType').invalid(entry.fieldsType, 'must be `FieldsV1`'),
      validateFieldManager(path.child('manager'), entry.manager ?? ''),
      byteLength(entry.subresource ?? '') > SUBRESOURCE_LIMIT_BYTES &&
        path.child('subresource').tooLong(SUBRESOURCE_LIMIT_BYTES),
    )
  })
}

function validateNames(meta: ObjectMeta, rules: ObjectMetaRules, path: FieldPath): FieldError[] {
  const { name = '', generateName = '' } = meta
  const errors =
    generateName === '' ? [] : path.child('generateName').check(generateName, () => rules.name(generateName, true))
  if (name === '') return [...errors, path.child('name').required('name or generateName is required')]
  return [...errors, ...path.child('name').check(name, () => rules.name(name, false))]
}

function validateNamespace(namespace: string, namespaced: boolean, path: FieldPath): FieldError[] {
  if (!namespaced) return namespace === '' ? [] : [path.forbidden('not allowed on this type')]
  if (namespace === '') return [path.required()]
  return path.check(namespace, () => nameIsLabel(namespace, false))
}

function validateOwnerReference(path: FieldPath, owner: OwnerReference): FieldError[] {
  const gvk = kindOf(owner)
  const errors: FieldError[] = []
  if (gvk.version === '') {
    errors.push(path.child('apiVersion').invalid(owner.apiVersion ?? '', 'version must not be empty'))
  }
  for (const name of ['kind', 'name'] as const) {
    if ((owner[name] ?? '') === '') errors.push(path.child(name).invalid('', 'must not be empty'))
  }
  if ((owner.uid ?? '') === '') errors.push(path.child('uid').invalid(asJson(''), 'must not be empty'))
  // Events are many and short-lived; as owners they would make the garbage collector watch them.
  if (kindKey(gvk) === '/v1, Kind=Event') {
    errors.push(path.invalid(owner, `${kindKey(gvk)} is disallowed from being an owner`))
  }
  return errors
}
