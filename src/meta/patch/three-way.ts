/**
 * Computes the three-way patch from a live object to a new configuration. It removes fields of the last configuration
 * that the new one lacks, and keeps all other fields. Follows apimachinery's strategicpatch, v1.36, as kubectl uses it.
 */

import { createMergePatch } from '#lib/json/merge-patch.ts'
import { jsonEqual } from '#lib/json/patch.ts'
import type { JsonValue } from '#lib/json/value.ts'

import type { Schema } from '../schema.ts'
import { isMap, type JsonMap } from './json-map.ts'
import { type GoType, lookupField, lookupList } from './patch-meta.ts'

interface Versions {
  /** The last applied configuration; empty without one. */
  readonly original: JsonMap
  /** The configuration to apply. */
  readonly modified: JsonMap
  /** The live object. */
  readonly current: JsonMap
}

interface DiffOptions {
  readonly ignoreAdditions: boolean
  readonly ignoreDeletions: boolean
}

/** A strategic merge patch; empty without changes. */
export function threeWayStrategicPatch(schema: Schema, { original, modified, current }: Versions): JsonMap {
  const type = { schema, pointer: false }
  const delta = diffMaps(type, current, modified, { ignoreAdditions: false, ignoreDeletions: true })
  const deletions = diffMaps(type, original, modified, { ignoreAdditions: true, ignoreDeletions: false })
  return mergePatches(type, deletions, delta)
}

/** The same for kinds without merge information. */
export function threeWayMergePatch({ original, modified, current }: Versions): JsonMap {
  const changes = onlyNulls(createMergePatch(current as never, modified as never), false)
  const deletions = onlyNulls(createMergePatch(original as never, modified as never), true)
  return mergeMaps(deletions, changes)
}

/** The removing or the setting part of a merge patch. */
function onlyNulls(patch: JsonMap, keepsNulls: boolean): JsonMap {
  const kept: JsonMap = {}
  for (const [key, value] of Object.entries(patch)) {
    if (isMap(value)) {
      const inside = onlyNulls(value, keepsNulls)
      if (Object.keys(inside).length > 0 || (!keepsNulls && Object.keys(value).length === 0)) kept[key] = inside
    } else if ((value === null) === keepsNulls) kept[key] = value
  }
  return kept
}

function mergeMaps(one: JsonMap, other: JsonMap): JsonMap {
  const merged = { ...one }
  for (const [key, value] of Object.entries(other)) {
    const before = merged[key]
    merged[key] = isMap(before) && isMap(value) ? mergeMaps(before, value) : value
  }
  return merged
}

/** The merge information of a field; undefined if values are replaced whole. */
function ruleOf(type: GoType | undefined, key: string): FieldRule | undefined {
  if (type === undefined) return undefined
  const field =
    typeof type.schema === 'object' && type.schema.type === 'struct' ? type.schema.fields.get(key) : undefined
  if (field === undefined) return undefined
  const { patchStrategy = [] } = field
  const { fieldType, strategy } = lookupField(type, key)
  return { fieldType, strategy, retainsKeys: patchStrategy.includes('retainKeys') }
}

interface FieldRule {
  readonly fieldType: GoType
  readonly strategy: string
  readonly retainsKeys: boolean
}

function diffMaps(
  type: GoType | undefined,
  original: JsonMap,
  modified: JsonMap,
  options: DiffOptions & { readonly retainsKeys?: boolean },
): JsonMap {
  const patch: JsonMap = {}
  for (const [key, value] of Object.entries(modified)) {
    const before = original[key]
    if (Object.hasOwn(original, key) && isMap(value) && isMap(before)) {
      diffMember(type, key, { before, value }, { patch, options })
    } else if (Array.isArray(value) && Array.isArray(before)) diffList(type, key, { before, value }, { patch, options })
    else if (!options.ignoreAdditions && !(Object.hasOwn(original, key) && isSame(before, value))) patch[key] = value
  }
  const gone = Object.keys(original).filter((key) => !Object.hasOwn(modified, key))
  if (!options.ignoreDeletions) for (const key of gone) patch[key] = null
  const hasMore = gone.some((key) => original[key] !== null)
  if (options.retainsKeys === true) addRetainedKeys(patch, modified, hasMore)
  return patch
}

/** For unions, the patch lists the retained keys. */
function addRetainedKeys(patch: JsonMap, modified: JsonMap, hasMore: boolean): void {
  const kept = Object.keys(modified).filter((key) => modified[key] !== null)
  if (kept.length > 0 && (hasMore || Object.keys(patch).length > 0)) patch['$retainKeys'] = kept.sort()
}

interface DiffContext {
  readonly patch: JsonMap
  readonly options: DiffOptions
}

function diffMember(
  type: GoType | undefined,
  key: string,
  { before, value }: { readonly before: JsonMap; readonly value: JsonMap },
  { patch, options }: DiffContext,
): void {
  const rule = ruleOf(type, key)
  if (rule?.strategy === 'replace') {
    if (!options.ignoreAdditions && !isEqual(before, value)) patch[key] = value
    return
  }
  const inside = diffMaps(memberType(rule?.fieldType), before, value, {
    ignoreAdditions: options.ignoreAdditions,
    ignoreDeletions: options.ignoreDeletions,
    retainsKeys: rule?.retainsKeys === true,
  })
  if (Object.keys(inside).length > 0) patch[key] = inside
}

/** Only structs describe their members. */
function memberType(type: GoType | undefined): GoType | undefined {
  return type?.schema.type === 'struct' ? type : undefined
}

function diffList(
  type: GoType | undefined,
  key: string,
  { before, value }: { readonly before: readonly unknown[]; readonly value: readonly unknown[] },
  { patch, options }: DiffContext,
): void {
  const rule = ruleOf(type, key)
  if (type === undefined || rule?.strategy !== 'merge') {
    if (!options.ignoreAdditions && !isEqual(before, value)) patch[key] = value
    return
  }
  if (before.length === 0) {
    if (value.length > 0 && !options.ignoreAdditions) patch[key] = value
    return
  }
  const { itemType, mergeKey } = lookupList(type, key)
  if (mergeKey === '') diffValues(key, before, value, { patch, options })
  else {
    const { retainsKeys } = rule
    diffItems({ key, mergeKey, itemType, retainsKeys }, before as JsonMap[], value as JsonMap[], { patch, options })
  }
}

/** Lists that are sets of values. */
function diffValues(
  key: string,
  before: readonly unknown[],
  value: readonly unknown[],
  { patch, options }: DiffContext,
): void {
  const added = options.ignoreAdditions ? [] : [...new Set(value)].filter((item) => !before.includes(item))
  const gone = options.ignoreDeletions ? [] : before.filter((item) => !value.includes(item))
  if (added.length > 0) patch[key] = added
  if (gone.length > 0) patch[`$deleteFromPrimitiveList/${key}`] = gone
  if (added.length > 0 || gone.length > 0 || !isEqual(before, value)) patch[`$setElementOrder/${key}`] = value
}

interface ItemRule {
  readonly key: string
  readonly mergeKey: string
  readonly itemType: GoType
  readonly retainsKeys: boolean
}

/** Lists that are maps by a key field. */
function diffItems(
  { key, mergeKey, itemType, retainsKeys }: ItemRule,
  before: readonly JsonMap[],
  value: readonly JsonMap[],
  { patch, options }: DiffContext,
): void {
  const changes: JsonMap[] = []
  for (const item of value) {
    const old = before.find((one) => isEqual(one[mergeKey], item[mergeKey]))
    if (old === undefined) {
      if (!options.ignoreAdditions) changes.push(item)
      continue
    }
    const inside = diffMaps(memberType(itemType), old, item, { ...options, retainsKeys })
    if (Object.keys(inside).length > 0) changes.push({ ...inside, [mergeKey]: item[mergeKey] })
  }
  const stays = (old: JsonMap): boolean => value.some((item) => isEqual(item[mergeKey], old[mergeKey]))
  if (!options.ignoreDeletions) {
    for (const old of before.filter((one) => !stays(one))) changes.push({ $patch: 'delete', [mergeKey]: old[mergeKey] })
  }
  const names = (list: readonly JsonMap[]): unknown[] => list.map((item) => item[mergeKey])
  if (changes.length > 0) patch[key] = changes
  if (changes.length > 0 || !isSameOrder(names(before), names(value))) {
    patch[`$setElementOrder/${key}`] = names(value).map((name) => ({ [mergeKey]: name }))
  }
}

/** True if the common elements have the same order. */
function isSameOrder(before: readonly unknown[], value: readonly unknown[]): boolean {
  const shared = (list: readonly unknown[], other: readonly unknown[]): unknown[] =>
    list.filter((name) => other.some((one) => isEqual(one, name)))
  return isEqual(shared(before, value), shared(value, before))
}

/** Merges two patches of the same object; the second wins. */
function mergePatches(type: GoType | undefined, first: JsonMap, second: JsonMap): JsonMap {
  const merged = { ...first }
  for (const [key, value] of Object.entries(second)) {
    const before = merged[key]
    if (isMap(before) && isMap(value)) {
      merged[key] = mergePatches(memberType(ruleOf(type, key)?.fieldType), before, value)
    } else if (Array.isArray(before) && Array.isArray(value) && !key.startsWith('$')) {
      merged[key] = mergeItems(type, key, before, value)
    } else merged[key] = value
  }
  return merged
}

function mergeItems(
  type: GoType | undefined,
  key: string,
  first: readonly unknown[],
  second: readonly unknown[],
): unknown[] {
  const rule = ruleOf(type, key)
  if (type === undefined || rule?.strategy !== 'merge') return [...second]
  const { itemType, mergeKey } = lookupList(type, key)
  if (mergeKey === '') return [...new Set([...first, ...second])]
  const merged = [...(first as JsonMap[])]
  for (const item of second as JsonMap[]) {
    const at = merged.findIndex((one) => isEqual(one[mergeKey], item[mergeKey]))
    if (at < 0) merged.push(item)
    else merged[at] = mergePatches(memberType(itemType), merged[at] as JsonMap, item)
  }
  return merged
}

function isSame(before: unknown, value: unknown): boolean {
  return kindOf(before) === kindOf(value) && isEqual(before, value)
}

function kindOf(value: unknown): string {
  if (value === null || Array.isArray(value)) return value === null ? 'null' : 'list'
  return typeof value
}

function isEqual(one: unknown, other: unknown): boolean {
  return jsonEqual((one ?? null) as JsonValue, (other ?? null) as JsonValue)
}
