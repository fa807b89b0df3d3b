/**
 * kustomize's strategic merge, which differs from the server's. Merged lists begin with the items of the patch, in its
 * order. Null removes a field. Lists of kinds without a schema are replaced.
 */
import { isJsonObject, type JsonObject, type JsonValue } from '#lib/json/value.ts'

import { KustomizeError } from './ids.ts'
import type { MergeSchema } from './merge-schema.ts'
import { scalarText } from './paths.ts'

type Value = JsonValue | undefined
type Directive = 'merge' | 'replace' | 'delete'

const DIRECTIVE = '$patch'

/** Merges the patch into the target; undefined if the patch deletes it. Consumes both. */
export function mergeStrategically(target: JsonObject, patch: JsonObject, schema: MergeSchema | undefined): Value {
  return walk(target, patch, schema)
}

function isNone(value: Value): value is null | undefined {
  return value === undefined || value === null
}

function walk(target: Value, patch: Value, schema: MergeSchema | undefined): Value {
  const first = isNone(target) ? patch : target
  if (isNone(first)) return walkMap(target, patch, schema)
  for (const one of [target, patch]) if (!isNone(one) && kindOf(one) !== kindOf(first)) throw mismatch(first, one)
  if (Array.isArray(first)) {
    if (schema?.merges !== true) return patch === undefined ? target : patch
    return walkList(target as JsonValue[] | null | undefined, patch as JsonValue[] | null | undefined, schema)
  }
  if (isJsonObject(first)) return walkMap(target, patch, schema)
  return patch === undefined ? target : patch
}

function kindOf(value: JsonValue): string {
  return Array.isArray(value) ? 'SequenceNode' : isJsonObject(value) ? 'MappingNode' : 'ScalarNode'
}

function mismatch(wanted: JsonValue, found: JsonValue): KustomizeError {
  return new KustomizeError(
    `wrong node kind: expected ${kindOf(wanted)} but was ${kindOf(found)}: node contents:\n${scalarText(found)}\n`,
  )
}

function walkMap(target: Value, patch: Value, schema: MergeSchema | undefined): Value {
  if (isNone(target)) {
    if (directiveOf(patch) === 'delete') return undefined
    // An existing null that the patch does not mention stays.
    if (patch === undefined) return target
    return isNone(patch) ? undefined : mergedFields(patch as JsonObject, patch as JsonObject, schema)
  }
  if (patch === null) return undefined
  const directive = directiveOf(patch)
  if (directive === 'delete') return undefined
  const base = (directive === 'replace' ? patch : target) as JsonObject
  return mergedFields(base, (patch ?? {}) as JsonObject, schema)
}

function mergedFields(target: JsonObject, patch: JsonObject, schema: MergeSchema | undefined): JsonObject {
  const isSame = target === patch
  for (const key of new Set([...Object.keys(target), ...Object.keys(patch)])) {
    const next = walk(target[key], isSame ? target[key] : patch[key], schema?.field(key))
    const isKept = next !== undefined && (next !== null || (patch[key] === undefined && target[key] === null))
    if (isKept) target[key] = next
    else delete target[key]
  }
  return target
}

/** The directive of a patch, which is removed from it. */
function directiveOf(patch: Value): Directive {
  if (Array.isArray(patch)) {
    const at = patch.findIndex((item) => isJsonObject(item) && Object.keys(item).length === 1 && DIRECTIVE in item)
    if (at < 0) return 'merge'
    const [item] = patch.splice(at, 1)
    return checked((item as JsonObject)[DIRECTIVE])
  }
  if (isNone(patch) || !isJsonObject(patch) || patch[DIRECTIVE] === undefined) return 'merge'
  const found = patch[DIRECTIVE]
  delete patch[DIRECTIVE]
  return checked(found)
}

function checked(value: Value): Directive {
  if (value === 'merge' || value === 'replace' || value === 'delete') return value
  throw new KustomizeError(`unknown patch strategy '${scalarText(value ?? null)}'`)
}

function walkList(
  target: JsonValue[] | null | undefined,
  patch: JsonValue[] | null | undefined,
  schema: MergeSchema,
): Value {
  if (isNone(target)) {
    if (isNone(patch)) return target
    return mergedItems([], patch, schema)
  }
  if (patch === null) return undefined
  const directive = directiveOf(patch)
  if (directive === 'delete') return undefined
  if (directive === 'replace') return mergedItems([], patch ?? [], schema)
  return mergedItems(target, patch ?? [], schema)
}

function mergedItems(target: readonly JsonValue[], patch: readonly JsonValue[], schema: MergeSchema): JsonValue[] {
  const isMaps = [...target, ...patch].some((item) => item !== null && isJsonObject(item))
  if (!isMaps || schema.keys.length === 0) return unionOf(target, patch)
  const left = [...target]
  const out: JsonValue[] = []
  for (const item of patch) {
    const at = left.findIndex((one) => isSameItem(one, item, schema.keys))
    const found = at < 0 ? undefined : left.splice(at, 1)[0]
    const values = keysOf(found, item, schema.keys)
    const next = walk(found, item, schema.elements())
    if (next !== undefined && next !== null) out.push(withKeys(next, values))
  }
  for (const item of left) {
    const next = walk(item, undefined, schema.elements())
    if (next !== undefined) out.push(next)
  }
  return out
}

/** Scalars: those of the patch first, without duplicates. */
function unionOf(target: readonly JsonValue[], patch: readonly JsonValue[]): JsonValue[] {
  const seen = new Set<string>()
  return [...patch, ...target].filter((item) => {
    const text = typeof item === 'object' ? JSON.stringify(item) : scalarText(item)
    return !seen.has(text) && seen.add(text)
  })
}

function keyText(item: Value, key: string): string {
  return isNone(item) || !isJsonObject(item) ? '' : scalarText(item[key] ?? null)
}

/** Items match if all common keys are equal and they share at least one. */
function isSameItem(one: JsonValue, other: JsonValue, keys: readonly string[]): boolean {
  const pairs = keys.map((key) => [keyText(one, key), keyText(other, key)] as const)
  const isFitting = pairs.every(([left, right]) => left === right || left === '' || right === '')
  return isFitting && pairs.some(([left, right]) => left === right && left !== '')
}

function keysOf(one: Value, other: Value, keys: readonly string[]): Map<string, JsonValue> {
  const found = new Map<string, JsonValue>()
  for (const key of keys) {
    for (const item of [one, other]) {
      const value = isNone(item) || !isJsonObject(item) ? undefined : item[key]
      if (value !== undefined && value !== null) found.set(key, value)
    }
  }
  return found
}

/** Keeps the merge keys of an item if the patch omits them. */
function withKeys(item: JsonValue, values: ReadonlyMap<string, JsonValue>): JsonValue {
  if (item !== null && isJsonObject(item)) for (const [key, value] of values) item[key] ??= value
  return item
}
