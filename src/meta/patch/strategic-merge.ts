/**
 * Strategic merge patch: a merge patch that merges lists by a key (`containers` by `name`) or as sets. The directives
 * are `$patch`, `$retainKeys`, `$deleteFromPrimitiveList/<field>` and `$setElementOrder/<field>`.
 *
 * Arguments stay unchanged; the result may share parts with them. The behaviour follows apimachinery's strategicpatch,
 * v1.36. Where upstream visits members in random order, this file uses the order of the patch.
 */
import type { Schema } from '../schema.ts'
import { arrange, identityOf, partition, requireKeys } from './element-order.ts'
import { get, goTypeOf, isMap, type JsonMap, printGo, put, without } from './json-map.ts'
import { deleteFromList, hasDirective, isListOfMaps, type ListRule, mergeLists } from './merge-list.ts'
import { type GoType, kindOf, lookupField, lookupList } from './patch-meta.ts'
import { badFormat, badPatchType, badType, type Directive, failed } from './strategic-merge-error.ts'

const PATCH = '$patch'
const RETAIN_KEYS = '$retainKeys'
const DELETE = '$deleteFromPrimitiveList'
const ORDER = '$setElementOrder'

/** `original` with `patch` merged into it. Throws StrategicMergeError. */
export function strategicMerge(schema: Schema, original: JsonMap, patch: JsonMap): JsonMap {
  return mergeMap({ schema, pointer: false }, original, patch)
}

function mergeMap(type: GoType, original: JsonMap, patch: JsonMap): JsonMap {
  if (Object.hasOwn(patch, PATCH)) return replaceWhole(patch)
  const result = retainKeys(original, patch)
  const done = new Set([RETAIN_KEYS])
  for (const [key, order] of Object.entries(patch)) {
    if (!key.startsWith(ORDER)) continue
    done.add(key)
    const field = targetOf(key, ORDER, 'setElementOrder list', order)
    if (mergeOrdered({ type, result, key: field }, get(patch, field), order)) done.add(field)
  }
  for (const [key, value] of Object.entries(patch)) {
    if (done.has(key)) continue
    if (key.startsWith(DELETE)) deleteValues({ type, result, key }, value)
    else mergeField({ type, result, key }, value)
  }
  return result
}

/** `$patch: replace` uses the rest of the patch, `$patch: delete` empties the map. */
function replaceWhole(patch: JsonMap): JsonMap {
  const directive = patch[PATCH]
  if (directive === 'delete') return {}
  if (directive === 'replace') return without(patch, PATCH)
  throw badPatchType(directive, patch)
}

/** A copy of `original` with only the keys of `$retainKeys`, which must include all other keys of the patch. */
function retainKeys(original: JsonMap, patch: JsonMap): JsonMap {
  const kept = get(patch, RETAIN_KEYS)
  if (kept === undefined) return { ...original }
  if (!Array.isArray(kept)) throw badFormat('retainKeys')
  const names = new Set<unknown>(kept)
  for (const [key, value] of Object.entries(patch)) {
    const directive = key === RETAIN_KEYS || key.startsWith(DELETE) || key.startsWith(ORDER)
    if (value !== null && !directive && !names.has(key)) throw badFormat('retainKeys')
  }
  return Object.fromEntries(Object.entries(original).filter(([key]) => names.has(key)))
}

/** The field of a directive `<prefix>/<field>`. */
function targetOf(key: string, prefix: string, directive: Directive, value: unknown): string {
  if (prefix === ORDER && !Array.isArray(value)) throw badType('list', value)
  if (!key.startsWith(`${prefix}/`)) throw badFormat(directive)
  return key.slice(prefix.length + 1)
}

/** A field of the merged map. */
interface MergedField {
  readonly type: GoType
  readonly result: JsonMap
  readonly key: string
}

function mergeField(target: MergedField, value: unknown): void {
  const { type, result, key } = target
  if (value === null) {
    delete result[key]
    return
  }
  const before = get(result, key)
  if (goTypeOf(before) !== goTypeOf(value)) return takeOver(target, value)
  if (isMap(value)) {
    const { fieldType, strategy } = lookupField(type, key)
    put(result, key, strategy === 'replace' ? value : mergeMap(fieldType, before as JsonMap, value))
  } else if (Array.isArray(value)) {
    const { rule, strategy } = ruleOf(type, key)
    put(result, key, strategy === 'merge' ? mergeLists(rule, before as unknown[], value) : value)
  } else put(result, key, value)
}

function ruleOf(type: GoType, key: string): { rule: ListRule; strategy: string } {
  const { itemType, strategy, mergeKey } = lookupList(type, key)
  const mergeItem = (original: JsonMap, patch: JsonMap): JsonMap => mergeMap(itemType, original, patch)
  return { rule: { mergeKey, itemKind: kindOf(itemType), mergeItem }, strategy }
}

function deleteValues({ type, result, key }: MergedField, value: unknown): void {
  // A directive without a field refers to the field with the name of the directive.
  const field = targetOf(key, DELETE, 'primitive list', value) || key
  const before = get(result, field)
  if (value === null) delete result[field]
  else if (before === undefined || goTypeOf(before) !== goTypeOf(value)) return
  else if (Array.isArray(value))
    put(result, field, deleteFromList(ruleOf(type, field).rule, before as unknown[], value))
  else mergeField({ type, result, key: field }, value)
}

/** Merges a list with a `$setElementOrder` and sorts it. False: the list does not exist. */
function mergeOrdered({ type, result, key }: MergedField, patchList: unknown, order: unknown): boolean {
  const before = get(result, key)
  for (const list of [before, patchList]) {
    if (list !== undefined && !Array.isArray(list)) throw badType('list', list)
  }
  const [original, patch] = [before as unknown[] | undefined, patchList as unknown[] | undefined]
  const { rule, strategy } = ruleOf(type, key)
  const { mergeKey } = rule
  const wanted = order as unknown[]
  checkOrder(patch ?? [], wanted, mergeKey)
  if (original === undefined && patch === undefined) return false
  const merged = mergeEither(original, patch, (a, b) => (strategy === 'merge' ? mergeLists(rule, a, b) : b))
  if (mergeKey !== '') requireKeys(merged, mergeKey)
  const parts = partition(merged, wanted, mergeKey)
  const isMaps = isListOfMaps(original ?? [], patch ?? [])
  put(result, key, arrange({ ...parts, order: wanted, before: original ?? [], mergeKey, isMaps }))
  return true
}

function mergeEither(
  original: readonly unknown[] | undefined,
  patch: readonly unknown[] | undefined,
  merge: (original: readonly unknown[], patch: readonly unknown[]) => readonly unknown[],
): readonly unknown[] {
  if (patch === undefined) return original ?? []
  return original === undefined
    ? patch.filter((item) => !hasDirective(item)).map((item) => cleaned(item, 'kept'))
    : merge(original, patch)
}

/** The elements of a patch must have the order of its directive. */
function checkOrder(items: readonly unknown[], order: readonly unknown[], mergeKey: string): void {
  if (items.length === 0 || order.length === 0) return
  const wanted = mergeKey === '' ? items : items.filter((item) => !isDeletion(item))
  let next = 0
  for (let at = 0; at < order.length && next < wanted.length;) {
    // A last one is not skipped: upstream then finds it missing from the order.
    if (hasDirective(wanted[next])) {
      next++
      continue
    }
    if (mergeKey !== '') requireKeys([wanted[next], order[at]], mergeKey)
    if (identityOf(wanted[next], mergeKey) === identityOf(order[at], mergeKey)) next++
    at++
  }
  if (next >= wanted.length) return
  throw failed(`The order in patch list:\n${printGo(items)}\n doesn't match ${ORDER} list:\n${printGo(order)}\n`)
}

function isDeletion(item: unknown): boolean {
  if (!isMap(item)) throw badType('map', item)
  return get(item, PATCH) === 'delete'
}

/** Sets a value without a counterpart: nulls and `$patch` directives have no effect there. */
function takeOver({ result, key }: MergedField, value: unknown): void {
  if (hasDirective(value)) delete result[key]
  else put(result, key, cleaned(value, 'dropped'))
}

/**
 * A copy without maps that have a `$patch` and, unless they are kept, without nulls in maps. Other directives stay as
 * in upstream; decoding drops or reports them.
 */
function cleaned(value: unknown, nulls: 'kept' | 'dropped'): unknown {
  const isDropped = (part: unknown): boolean =>
    hasDirective(part) && (nulls === 'kept' || (part as JsonMap)[PATCH] !== null)
  if (Array.isArray(value)) return value.filter((item) => !isDropped(item)).map((item) => cleaned(item, nulls))
  if (!isMap(value)) return value
  const copy: JsonMap = {}
  for (const key of Object.keys(value)) {
    const part = value[key]
    if (!isDropped(part) && (part !== null || nulls === 'kept')) put(copy, key, cleaned(part, nulls))
  }
  return copy
}
