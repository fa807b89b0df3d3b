/** Strategic merge of lists: lists of maps by their merge key, lists of scalars as sets. */
import { type Arrangement, arrange, identityOf, partition } from './element-order.ts'
import { get, goTypeOf, isMap, type JsonMap, printGo } from './json-map.ts'
import { badPatchType, failed, noMergeKey, StrategicMergeError } from './strategic-merge-error.ts'

export interface ListRule {
  /** Empty if the elements have none. */
  readonly mergeKey: string
  /** Go's kind of the elements, for an error text. */
  readonly itemKind: string
  readonly mergeItem: (original: JsonMap, patch: JsonMap) => JsonMap
}

export function mergeLists(rule: ListRule, original: readonly unknown[], patch: readonly unknown[]): unknown[] {
  if (original.length === 0 && patch.length === 0) return []
  if (isListOfMaps(original, patch)) return mergeMaps(rule, original as JsonMap[], patch as JsonMap[])
  // The order does not matter here: `reorder` sorts by patch and original.
  const merged = [...new Set([...original, ...patch])]
  return reorder(rule, merged, { order: patch, before: original, isMaps: false })
}

/** `$deleteFromPrimitiveList`. For a list of maps upstream merges instead. */
export function deleteFromList(rule: ListRule, original: readonly unknown[], patch: readonly unknown[]): unknown[] {
  if (original.length === 0 && patch.length === 0) return []
  if (isListOfMaps(original, patch)) return mergeMaps(rule, original as JsonMap[], patch as JsonMap[])
  const removed = new Set(patch)
  return original.filter((item) => !removed.has(item))
}

/** Throws if the elements of all lists have different types or are lists, or if there are none. */
export function isListOfMaps(...lists: readonly (readonly unknown[])[]): boolean {
  let type: string | undefined
  for (const item of lists.flat()) {
    const found = goTypeOf(item)
    // Upstream panics here.
    if (found === undefined && type === undefined) throw failed('list elements must not be null')
    if (type === undefined && Array.isArray(item))
      throw new StrategicMergeError('unprocessable', 'lists of lists are not supported')
    type ??= found
    if (found !== type) throw failed(`list element types are not identical: ${printGo(lists)}`)
  }
  if (type === undefined) throw failed('no elements in any of the given slices')
  return type === 'map[string]interface {}'
}

function mergeMaps(rule: ListRule, original: readonly JsonMap[], patch: readonly JsonMap[]): unknown[] {
  const { mergeKey } = rule
  if (mergeKey === '') throw failed(`cannot merge lists without merge key for ${rule.itemKind}`)
  const { rest, replace, deleted } = splitDirectives(patch, mergeKey)
  const before = replace ? rest : original.filter((item) => !isNamed(item, mergeKey, deleted))
  const order = replace ? [] : rest
  const merged = [...before]
  const indexes = new Map<unknown, number>()
  for (const [at, item] of merged.entries()) remember(indexes, item, mergeKey, at)
  for (const item of order) {
    if (!Object.hasOwn(item, mergeKey)) throw noMergeKey(item, mergeKey)
    const at = indexes.get(identityOf(item, mergeKey))
    const found = at === undefined ? undefined : merged[at]
    if (at !== undefined && found !== undefined) merged[at] = rule.mergeItem(found, item)
    else remember(indexes, item, mergeKey, merged.push(item) - 1)
  }
  return reorder(rule, merged, { order, before, isMaps: true })
}

function isNamed(item: JsonMap, mergeKey: string, names: ReadonlySet<unknown>): boolean {
  return names.size > 0 && Object.hasOwn(item, mergeKey) && names.has(identityOf(item, mergeKey))
}

function remember(indexes: Map<unknown, number>, item: JsonMap, mergeKey: string, at: number): void {
  if (!Object.hasOwn(item, mergeKey)) return
  const identity = identityOf(item, mergeKey)
  if (!indexes.has(identity)) indexes.set(identity, at)
}

function reorder(
  { mergeKey }: ListRule,
  merged: readonly unknown[],
  how: Pick<Arrangement, 'order' | 'before' | 'isMaps'>,
): unknown[] {
  return arrange({ ...partition(merged, how.order, mergeKey), ...how, mergeKey })
}

interface ListDirectives {
  /** The elements that are not directives. */
  readonly rest: JsonMap[]
  /** The list contained `{$patch: replace}`: the rest is the new list. */
  readonly replace: boolean
  readonly deleted: ReadonlySet<unknown>
}

function splitDirectives(patch: readonly JsonMap[], mergeKey: string): ListDirectives {
  const rest: JsonMap[] = []
  const deleted = new Set<unknown>()
  let replace = false
  for (const item of patch) {
    const directive = get(item, '$patch')
    if (directive === undefined) rest.push(item)
    else if (directive === 'replace') replace = true
    else if (directive === 'merge') throw failed('merging lists cannot yet be specified in the patch')
    else if (directive !== 'delete') throw badPatchType(directive, item)
    else if (!Object.hasOwn(item, mergeKey)) throw noMergeKey(item, mergeKey)
    else deleted.add(identityOf(item, mergeKey))
  }
  return { rest, replace, deleted }
}

/** An element with a directive. */
export function hasDirective(item: unknown): boolean {
  return isMap(item) && Object.hasOwn(item, '$patch')
}
