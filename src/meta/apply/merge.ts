/** Merges an applied configuration into the live object. Fields that the configuration omits keep their values. */
import { runAtOnce, shouldYield, type Steps } from '#lib/time-slicing.ts'

import { put } from '../patch/json-map.ts'
import {
  asList,
  asMap,
  atomOf,
  type Entries,
  entryType,
  isHollow,
  itemElement,
  itemType,
  type TypeRef,
} from './atom.ts'
import type { PathElement } from './path-element.ts'

/**
 * `undefined` means absent. Null is an empty map or list. Never changes its arguments; the result may share parts with
 * both. Throws ItemFault.
 */
export function mergeTyped(type: TypeRef, live: unknown, applied: unknown): unknown {
  return runAtOnce(mergeInSteps(type, live, applied))
}

/** The same, yielding to the event loop. */
export function* mergeInSteps(type: TypeRef, live: unknown, applied: unknown): Steps<unknown> {
  if (applied === undefined) return live
  if (live === undefined || (isHollow(live) && isHollow(applied))) return applied
  // Null takes the type of the other side; other applied values determine it.
  const atom = atomOf(type, applied === null ? live : applied)
  if (atom === 'map') return yield* mergeEntries(type, asMap(live) ?? {}, asMap(applied) ?? {})
  if (atom === 'leaf') return applied
  return yield* mergeItems(type, asList(live) ?? [], asList(applied) ?? [])
}

function* mergeEntries(type: TypeRef, live: Entries, applied: Entries): Steps<Entries> {
  const merged: Record<string, unknown> = {}
  // One by one, because a spread of very many elements is slow and blocks.
  for (const name of Object.keys(live)) {
    if (shouldYield()) yield
    put(merged, name, live[name])
  }
  for (const name of Object.keys(applied)) {
    if (shouldYield()) yield
    const [entry, value] = [entryType(type, name), applied[name]]
    const isLeaf = typeof value !== 'object' && atomOf(entry, value) === 'leaf'
    const before = Object.hasOwn(live, name) ? live[name] : undefined
    put(merged, name, isLeaf && value !== undefined ? value : yield* mergeInSteps(entry, before, value))
  }
  return merged
}

/**
 * Applied items keep the applier's order. Items of the live list only stay in front of the shared item that followed
 * them. A duplicate live item is replaced, not merged.
 */
function* mergeItems(type: TypeRef, live: readonly unknown[], applied: readonly unknown[]): Steps<unknown[]> {
  const left = live.map((item) => itemElement(type, item))
  const right = applied.map((item) => itemElement(type, item))
  const known = indexOnce(left, live)
  const wanted = new Set(right)
  const shared = right.filter((element) => known.has(element))
  const done = new Set<PathElement>()
  const merged: unknown[] = []
  const items = itemType(type)
  let [atLeft, atRight, atShared] = [0, 0, 0]
  const takeRight = function* (): Steps<void> {
    const element = right[atRight] ?? ''
    done.add(element)
    merged.push(yield* mergeInSteps(items, known.get(element), applied[atRight]))
    atRight++
    if (shared[atShared] === element) atShared++
  }
  while (atLeft < left.length || atRight < right.length) {
    const element = left[atLeft]
    if (shouldYield()) yield
    if (element === undefined) yield* takeRight()
    else if (!wanted.has(element)) merged.push(live[atLeft++])
    else if (element === right[atRight]) {
      yield* takeRight()
      atLeft++
    }
    // A shared item out of order: it goes to the applier's position.
    else if (atRight < right.length && shared[atShared] !== undefined && shared[atShared] !== element) atLeft++
    else {
      if (done.has(element)) atLeft++
      if (atRight < right.length) yield* takeRight()
    }
  }
  return merged
}

/** Items by element; null for duplicates. */
function indexOnce(elements: readonly PathElement[], items: readonly unknown[]): Map<PathElement, unknown> {
  const found = new Map<PathElement, unknown>()
  for (const [at, element] of elements.entries()) found.set(element, found.has(element) ? null : items[at])
  return found
}
