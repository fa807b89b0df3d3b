/** Merges an applied configuration into the live object: what is applied wins, what is not is left alone. */
import { atOnce, isDue, type Steps } from '#lib/slices.ts'

import { put } from '../patch/json-map.ts'
import { asList, asMap, atomOf, type Entries, entryType, isHollow, itemElement, itemType, type Typed } from './atom.ts'
import type { PathElement } from './path-element.ts'

/**
 * `undefined` stands for what is not there. Null is a map or list with nothing in it. Neither value is changed; the
 * result may share parts with both. Throws ItemFault.
 */
export function mergeTyped(type: Typed, live: unknown, applied: unknown): unknown {
  return atOnce(mergeInSteps(type, live, applied))
}

/** The same, with turns for others. */
export function* mergeInSteps(type: Typed, live: unknown, applied: unknown): Steps<unknown> {
  if (applied === undefined) return live
  if (live === undefined || (isHollow(live) && isHollow(applied))) return applied
  // Null takes the form of the other side; anything else applied says itself what it is.
  const atom = atomOf(type, applied === null ? live : applied)
  if (atom === 'map') return yield* mergeEntries(type, asMap(live) ?? {}, asMap(applied) ?? {})
  if (atom === 'leaf') return applied
  return yield* mergeItems(type, asList(live) ?? [], asList(applied) ?? [])
}

function* mergeEntries(type: Typed, live: Entries, applied: Entries): Steps<Entries> {
  const merged: Record<string, unknown> = {}
  // One by one: a spread of very many takes longer than anything else here, and in one piece.
  for (const name of Object.keys(live)) {
    if (isDue()) yield
    put(merged, name, live[name])
  }
  for (const name of Object.keys(applied)) {
    if (isDue()) yield
    const [entry, value] = [entryType(type, name), applied[name]]
    const isLeaf = typeof value !== 'object' && atomOf(entry, value) === 'leaf'
    const before = Object.hasOwn(live, name) ? live[name] : undefined
    put(merged, name, isLeaf && value !== undefined ? value : yield* mergeInSteps(entry, before, value))
  }
  return merged
}

/**
 * Applied items keep the order the applier gave them. Items only the live list has stay in front of the shared item
 * they stood in front of. An item the live list has twice is not merged into: it is replaced.
 */
function* mergeItems(type: Typed, live: readonly unknown[], applied: readonly unknown[]): Steps<unknown[]> {
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
    if (isDue()) yield
    if (element === undefined) yield* takeRight()
    else if (!wanted.has(element)) merged.push(live[atLeft++])
    else if (element === right[atRight]) {
      yield* takeRight()
      atLeft++
    }
    // Shared, but not the one whose turn it is: it comes where the applier put it.
    else if (atRight < right.length && shared[atShared] !== undefined && shared[atShared] !== element) atLeft++
    else {
      if (done.has(element)) atLeft++
      if (atRight < right.length) yield* takeRight()
    }
  }
  return merged
}

/** Items by element; null for those that are there more than once. */
function indexOnce(elements: readonly PathElement[], items: readonly unknown[]): Map<PathElement, unknown> {
  const found = new Map<PathElement, unknown>()
  for (const [at, element] of elements.entries()) found.set(element, found.has(element) ? null : items[at])
  return found
}
