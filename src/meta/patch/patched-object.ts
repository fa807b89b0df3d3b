/**
 * Decodes the result of a patch to canonical form. Unknown and duplicate fields are rejected or reported in upstream's
 * order.
 */
import { goQuote } from '#lib/go/text.ts'
import { stringifyJson } from '#lib/json/json.ts'
import type { Steps } from '#lib/time-slicing.ts'

import { decodeValue, type FieldValidation } from '../codec/decode.ts'
import { CodecError } from '../codec/error.ts'
import { clearsManagedFields, customTypeText, unknownKindText } from '../codec/object.ts'
import { type GroupVersionKind, parseApiVersion } from '../kind.ts'
import type { KubeObject } from '../object.ts'
import type { StructSchema } from '../schema.ts'
import { invalidError } from '../status-errors.ts'
import { fieldPath } from '../validation/field-path.ts'
import { get, isMap, type JsonMap, printGo, put } from './json-map.ts'
import type { PatchDocument } from './patch-document.ts'
import { restore } from './restore.ts'

export interface PatchedObject {
  readonly object: KubeObject
  /** The warnings. */
  readonly offences: readonly string[]
}

/** The handling of a patch result. */
export interface PatchedRules {
  readonly schema: StructSchema
  readonly validation: FieldValidation
  /** True if the kind exists. */
  readonly isKnown: (gvk: GroupVersionKind) => boolean
  /** For a custom resource: removes unknown fields and returns their paths. */
  readonly prune?: ((object: KubeObject) => readonly string[]) | undefined
}

/** Returns a new patched object each time, because decoding consumes it. */
type Make = () => Steps<unknown>

/** Throws StatusError, 422 for a schema mismatch or, under Strict, offences. */
export function* decodePatched(
  { schema, validation, isKnown, prune }: PatchedRules,
  document: PatchDocument,
  make: Make,
): Steps<PatchedObject> {
  const patched = yield* make()
  yield
  yield* checkKind(isKnown, document, patched, make)
  if (prune !== undefined) requireKind(document, patched)
  const clears = clearsManagedFields(patched)
  const decoded = decodeOnce(schema, patched, validation)
  yield
  const { value, offences } =
    decoded ?? (yield* look({ schema, isCustom: prune !== undefined }, document, make, validation))
  yield
  const object = value as KubeObject
  if (clears) object.metadata.managedFields = []
  const unknown = prune?.(object).map((path) => `unknown field ${goQuote(path)}`) ?? []
  const all = [...document.offences, ...offences, ...(validation === 'Ignore' ? [] : unknown)]
  if (validation === 'Strict' && all.length > 0) {
    throw invalidPatch(shownIn(document, yield* make()), `strict decoding error: ${all.join(', ')}`)
  }
  return { object, offences: all }
}

/** A patch may change the kind, which is ignored if the kind exists. */
function* checkKind(
  isKnown: PatchedRules['isKnown'],
  document: PatchDocument,
  patched: unknown,
  make: Make,
): Steps<void> {
  if (document.type === 'application/strategic-merge-patch+json' || !isMap(patched)) return
  const { apiVersion, kind } = patched
  if (typeof apiVersion !== 'string' || typeof kind !== 'string' || apiVersion.split('/').length > 2) return
  const gvk = { ...parseApiVersion(apiVersion), kind }
  if (!isKnown(gvk)) throw invalidPatch(shownIn(document, yield* make()), unknownKindText(gvk))
}

/** A custom resource is decoded by its own kind. */
function requireKind(document: PatchDocument, patched: unknown): void {
  if (!isMap(patched) || (patched['kind'] ?? '') !== '') return
  const shown = shownIn(document, patched)
  throw invalidPatch(shown, `Object 'Kind' is missing in '${shown}'`)
}

interface DecodedPatch {
  readonly value: unknown
  readonly offences: readonly string[]
}

/** Undefined if there are errors. */
function decodeOnce(schema: StructSchema, patched: unknown, validation: FieldValidation): DecodedPatch | undefined {
  const offences: string[] = []
  try {
    const value = decodeValue(schema, patched, validation, { offences })
    return offences.length === 0 ? { value, offences } : undefined
  } catch (cause) {
    if (cause instanceof CodecError) return undefined
    throw cause
  }
}

/** Decodes again, in upstream's order for this patch type. */
function* look(
  { schema, isCustom }: { readonly schema: StructSchema; readonly isCustom: boolean },
  document: PatchDocument,
  make: Make,
  validation: FieldValidation,
): Steps<DecodedPatch> {
  const offences: string[] = []
  try {
    if (document.type !== 'application/strategic-merge-patch+json') {
      const sorted = sortTouched(yield* make(), touchedBy(document))
      yield
      return { value: decodeValue(schema, sorted, validation, { offences }), offences }
    }
    const { value, unknown } = restore(schema, yield* make())
    yield
    const canonical = decodeValue(schema, value, 'Ignore', { offences })
    return { value: canonical, offences: validation === 'Ignore' ? [] : unknown }
  } catch (cause) {
    if (!(cause instanceof CodecError)) throw cause
    const why = isCustom ? customTypeText(cause.message) : cause.message
    throw invalidPatch(shownIn(document, yield* make()), why)
  }
}

/** Upstream names neither the kind nor the object here. */
function invalidPatch(shown: string, why: string): Error {
  return invalidError({ group: '', kind: '' }, '', [fieldPath('patch').invalid(shown, why)])
}

/** The form of the patch in an error: Go's map for strategic ones, the result for others. */
function shownIn(document: PatchDocument, patched: unknown): string {
  if (document.type === 'application/strategic-merge-patch+json') return printGo(document.value)
  return stringifyJson(sortTouched(patched, touchedBy(document)))
}

/** Go has maps where the patch was applied, and prints sorted keys; other parts are unchanged. */
function sortTouched(value: unknown, touched: object): unknown {
  const deeper = (key: string, part: unknown): unknown => {
    const below = get(touched as JsonMap, key)
    return typeof below === 'object' && below !== null ? sortTouched(part, below) : part
  }
  if (Array.isArray(value)) return value.map((item, at) => deeper(String(at), item))
  if (!isMap(value)) return value
  const sorted: JsonMap = {}
  for (const key of Object.keys(value).sort()) put(sorted, key, deeper(key, value[key]))
  return sorted
}

/** The patched paths, as nested maps. */
function touchedBy({ type, value }: PatchDocument): JsonMap {
  if (type === 'application/merge-patch+json') return isMap(value) ? value : {}
  const touched: JsonMap = {}
  if (type !== 'application/json-patch+json' || !Array.isArray(value)) return touched
  for (const operation of value as readonly JsonMap[]) {
    for (const path of [operation['path'], operation['from']]) if (typeof path === 'string') touch(touched, path)
  }
  return touched
}

/** The containers on the path; the last value is unchanged. */
function touch(touched: JsonMap, path: string): void {
  let at = touched
  for (const step of path.split('/').slice(1, -1)) {
    const key = step.replaceAll('~1', '/').replaceAll('~0', '~')
    const next = get(at, key) ?? {}
    put(at, key, next)
    at = next as JsonMap
  }
}
