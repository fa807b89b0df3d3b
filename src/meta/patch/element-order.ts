/**
 * Orders the elements of a merged list. Elements of the patch have the order of the patch; every other element
 * precedes the one that followed it in the live list.
 */
import { get, isMap, type JsonMap } from './json-map.ts'
import { badType, failed, noMergeKey } from './strategic-merge-error.ts'

/**
 * The identity of an element: the value of the merge key in maps, otherwise the element itself. Maps and lists as merge
 * keys equal only themselves; upstream panics when it compares two.
 */
export function identityOf(item: unknown, mergeKey: string): unknown {
  return mergeKey !== '' && isMap(item) ? get(item, mergeKey) : item
}

export interface Partition {
  readonly named: readonly unknown[]
  readonly others: readonly unknown[]
}

/** Splits a merged list into elements in `order` and others. */
export function partition(merged: readonly unknown[], order: readonly unknown[], mergeKey: string): Partition {
  if (mergeKey !== '') requireKeys(merged, mergeKey)
  const names = new Set(order.map((item) => identityOf(item, mergeKey)))
  const named: unknown[] = []
  const others: unknown[] = []
  for (const item of merged) (names.has(identityOf(item, mergeKey)) ? named : others).push(item)
  const misfit = mergeKey === '' || others.length === 0 ? -1 : order.findIndex((item) => !isMap(item))
  if (misfit >= 0) throw failed(`value for key ${misfit} is not a map`)
  return { named, others }
}

export interface Arrangement extends Partition {
  readonly order: readonly unknown[]
  /** The list before the patch, for the positions of the server's elements. */
  readonly before: readonly unknown[]
  readonly mergeKey: string
  readonly isMaps: boolean
}

export function arrange({ named, others, order, before, mergeKey, isMaps }: Arrangement): unknown[] {
  if (isMaps) for (const list of [order, before]) requireKeys(list, mergeKey)
  const rank = rankOf(order, mergeKey)
  const place = rankOf(before, mergeKey)
  const right = sortByRank(named, rank, mergeKey)
  const left = sortByRank(others, place, mergeKey)
  const placeOf = (item: unknown): number | undefined => place.get(identityOf(item, mergeKey))
  const result: unknown[] = []
  let next = 0
  for (const item of right) {
    const limit = placeOf(item) ?? -1
    for (; next < left.length && (placeOf(left[next]) ?? limit) < limit; next++) result.push(left[next])
    result.push(item)
  }
  return [...result, ...left.slice(next)]
}

type Ranks = ReadonlyMap<unknown, number>

function rankOf(items: readonly unknown[], mergeKey: string): Ranks {
  const ranks = new Map<unknown, number>()
  for (const [at, item] of items.entries()) {
    const identity = identityOf(item, mergeKey)
    if (!ranks.has(identity)) ranks.set(identity, at)
  }
  return ranks
}

/** Elements marked for deletion go last, if a list is taken over with its directives. */
function sortByRank(items: readonly unknown[], ranks: Ranks, mergeKey: string): unknown[] {
  const isDeleted = (item: unknown): boolean => mergeKey !== '' && get(item as JsonMap, '$patch') === 'delete'
  const kept = items.filter((item) => !isDeleted(item))
  const rank = (item: unknown): number | undefined => ranks.get(identityOf(item, mergeKey))
  if (kept.every((item) => rank(item) !== undefined)) kept.sort((a, b) => (rank(a) ?? 0) - (rank(b) ?? 0))
  else if (kept.length <= INSERTION_SORT_ITEMS) insertionSort(kept, rank)
  else kept.sort((a, b) => (rank(a) ?? -1) - (rank(b) ?? -1))
  return [...kept, ...items.filter(isDeleted)]
}

/** Go sorts up to this many elements by insertion. Longer lists have no reliable order in upstream. */
const INSERTION_SORT_ITEMS = 12

/**
 * Elements without a rank come before their predecessors: upstream's comparison, which is not transitive, and its sort.
 */
function insertionSort(items: unknown[], rank: (item: unknown) => number | undefined): void {
  const isLess = (a: number | undefined, b: number | undefined): boolean =>
    a === undefined || b === undefined ? true : a < b
  for (let i = 1; i < items.length; i++) {
    for (let j = i; j > 0 && isLess(rank(items[j]), rank(items[j - 1])); j--) {
      const moved = items[j]
      items[j] = items[j - 1]
      items[j - 1] = moved
    }
  }
}

export function requireKeys(items: readonly unknown[], mergeKey: string): void {
  for (const item of items) {
    if (!isMap(item)) throw badType('map', item)
    if (!Object.hasOwn(item, mergeKey)) throw noMergeKey(item, mergeKey)
  }
}
