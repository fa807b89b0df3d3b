/** Applies replacements: copies a value of one resource into fields of others. */
import { isJsonObject, type JsonValue } from '#lib/json/value.ts'
import { resolveScalar } from '#lib/yaml/scalar.ts'

import { type Id, idText, isSelected, KustomizeError } from './ids.ts'
import { matchPath, type ValueSlot, scalarText, splitDotted } from './paths.ts'
import type { Resource, Resources } from './resource.ts'
import { fitsId, fitsMarks, type ResourceSelector } from './selectors.ts'

interface FieldOptions {
  readonly delimiter?: string
  readonly index?: number
  readonly create?: boolean
}

export interface ReplacementSource extends Partial<Id> {
  readonly fieldPath?: string
  readonly options?: FieldOptions
}

export interface ReplacementTarget {
  readonly select?: ResourceSelector
  readonly reject?: readonly ResourceSelector[]
  readonly fieldPaths?: readonly string[]
  readonly options?: FieldOptions
}

export interface Replacement {
  readonly source?: ReplacementSource
  readonly sourceValue?: string
  readonly targets?: readonly ReplacementTarget[]
}

/** Throws KustomizeError. */
export function replace(resources: Resources, { source, sourceValue, targets }: Replacement): void {
  if ((source === undefined && sourceValue === undefined) || targets === undefined) {
    throw new KustomizeError('replacements must specify a source and at least one target')
  }
  if (source !== undefined && sourceValue !== undefined) {
    throw new KustomizeError('value and resource selectors are mutually exclusive')
  }
  const value = source === undefined ? (sourceValue ?? '') : sourceOf(resources, source)
  for (const target of targets) replaceIn(resources, target, value)
}

function idsOf({ previous, id }: Resource): Id[] {
  return [...previous, id]
}

function sourceOf({ list }: Resources, source: ReplacementSource): JsonValue {
  const { kind = '', version = '', group = '', name = '', namespace = '', fieldPath = '' } = source
  const fits = (id: Id): boolean =>
    isSelected(id, source) && (name === '' || name === id.name) && (namespace === '' || namespace === id.namespace)
  const found = list.filter((one) => idsOf(one).some(fits))
  const [resource] = found
  const id = idText({ kind, version, group, name, namespace })
  const selectorText = fieldPath === '' ? id : `${id}:${fieldPath}`
  if (resource === undefined) throw new KustomizeError(`nothing selected by ${selectorText}`)
  if (found.length > 1) throw new KustomizeError(`multiple matches for selector ${selectorText}`)
  return refined(fieldOf(resource, fieldPath === '' ? 'metadata.name' : fieldPath, id), source.options)
}

function fieldOf(resource: Resource, path: string, id: string): JsonValue {
  const value = matchPath(rootOf(resource), splitDotted(path))[0]?.value
  if (value !== undefined && !isEmpty(value)) return value
  throw new KustomizeError(`fieldPath \`${path}\` is missing for replacement source ${id}`)
}

function isEmpty(value: JsonValue): boolean {
  return value === null || value === '' || (typeof value === 'object' && Object.keys(value).length === 0)
}

function refined(value: JsonValue, options: FieldOptions | undefined): JsonValue {
  const { delimiter = '', index = 0 } = options ?? {}
  if (delimiter === '') return structuredClone(value)
  if (value !== null && typeof value === 'object') {
    throw new KustomizeError('delimiter option can only be used with scalar nodes')
  }
  const parts = scalarText(value).split(delimiter)
  const part = parts[index]
  if (part === undefined) {
    throw new KustomizeError(`options.index ${index} is out of bounds for value ${scalarText(value)}`)
  }
  return part
}

function rootOf(resource: Resource): ValueSlot {
  return {
    value: resource.value,
    set: (value) => {
      if (value !== null && isJsonObject(value)) resource.value = value
    },
  }
}

function replaceIn({ list }: Resources, target: ReplacementTarget, value: JsonValue): void {
  const { select, reject = [] } = target
  if (select === undefined) throw new KustomizeError('target must specify resources to select')
  for (const resource of list) {
    const isRejected = reject.some((one) => {
      const hasMarks = Boolean(one.labelSelector) || Boolean(one.annotationSelector)
      const hasId = Boolean(one.name ?? one.namespace ?? one.kind ?? one.group ?? one.version)
      const byMarks = hasMarks && fitsMarks(one, resource)
      return byMarks || (hasId && idsOf(resource).some((id) => fitsId(one, id)))
    })
    if (isRejected || !fitsMarks(select, resource) || !idsOf(resource).some((id) => fitsId(select, id))) continue
    for (const path of target.fieldPaths ?? ['metadata.name']) replaceAt(resource, path, target, value)
  }
}

function replaceAt(resource: Resource, path: string, { options }: ReplacementTarget, value: JsonValue): void {
  const isCreating = options?.create === true
  const created =
    value !== null && typeof value === 'object' ? (): JsonValue => structuredClone(value) : (): JsonValue => ''
  const failed = `unable to find ${isCreating ? 'or create ' : ''}field "${path}" in replacement target`
  let slots: ValueSlot[]
  let before: string[]
  try {
    before = isCreating ? [] : matchPath(rootOf(resource), splitDotted(path)).map(() => '')
    slots = matchPath(rootOf(resource), splitDotted(path), isCreating ? created : undefined)
  } catch (error) {
    throw new KustomizeError(`${failed}: ${(error as Error).message}`, { cause: error })
  }
  if (slots.length === 0) throw new KustomizeError(failed)
  for (const slot of slots) put(slot, value, { ...options, isNew: isCreating && before.length === 0 })
}

function put(slot: ValueSlot, value: JsonValue, options: FieldOptions & { readonly isNew: boolean }): void {
  const { delimiter = '', index = 0 } = options
  const { value: old = null } = slot
  const isScalar = old === null || typeof old !== 'object'
  if (delimiter !== '') {
    if (!isScalar) throw new KustomizeError('delimiter option can only be used with scalar nodes')
    const parts = scalarText(old).split(delimiter)
    if (index < 0) parts.unshift(scalarText(value))
    else if (index >= parts.length) parts.push(scalarText(value))
    else parts[index] = scalarText(value)
    return slot.set(parts.join(delimiter))
  }
  if (!isScalar || (value !== null && typeof value === 'object')) return slot.set(structuredClone(value))
  // A scalar keeps its type; only its text changes.
  const text = scalarText(value)
  slot.set(typeof old === 'string' && old !== '' ? text : resolveScalar(text).value)
}
