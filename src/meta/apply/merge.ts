/** Merges an applied configuration into the live object: what is applied wins, what is not is left alone. */
import { put } from '../patch/json-map.ts'
import { asList, asMap, atomOf, type Entries, entryType, isHollow, itemElement, itemType, type Typed } from './atom.ts'
import type { PathElement } from './path-element.ts'

/**
 * `undefined` stands for what is not there. Null is a map or list with nothing in it. Neither value is changed; the
 * result may share parts with both. Throws ItemFault.
 */
export function mergeTyped(type: Typed, live: unknown, applied: unknown): unknown {
  if (applied === undefined) return live
  if (live === undefined || (isHollow(live) && isHollow(applied))) return applied
  // Null takes the form of the other side; anything else applied says itself what it is.
  const atom = atomOf(type, applied === null ? live : applied)
  if (atom === 'map') return mergeEntries(type, asMap(live) ?? {}, asMap(applied) ?? {})
  if (atom === 'leaf') return applied
  return mergeItems(type, asList(live) ?? [], asList(applied) ?? [])
}

function mergeEntries(type: Typed, live: Entries, applied: Entries): Entries {
  const merged: Record<string, unknown> = { ...live }
  for (const [name, value] of Object.entries(applied)) {
    const before = Object.hasOwn(live, name) ? live[name] : undefined
    put(merged, name, mergeTyped(entryType(type, name), before, value))
  }
  return merged
}

/**
 * Applied items keep the order the applier gave them. Items only the live list has stay in front of the shared item
 * they stood in front of. An item the live list has twice is not merged into: it is replaced.
 */
function mergeItems(type: Typed, live: readonly unknown[], applied: readonly unknown[]): unknown[] {
  const left = live.map((item) => itemElement(type, item))
  const right = applied.map((item) => itemElement(type, item))
  const known = indexOnce(left, live)
  const wanted = new Set(right)
  const shared = right.filter((element) => known.has(element))
  const done = new Set<PathElement>()
  const merged: unknown[] = []
  const items = itemType(type)
  let [atLeft, atRight, atShared] = [0, 0, 0]
  const takeRight = (): void => {
    const element = right[atRight] ?? ''
    done.add(element)
    merged.push(mergeTyped(items, known.get(element), applied[atRight]))
    atRight++
    if (shared[atShared] === element) atShared++
  }
  while (atLeft < left.length || atRight < right.length) {
    const element = left[atLeft]
    if (element === undefined) takeRight()
    else if (!wanted.has(element)) merged.push(live[atLeft++])
    else if (element === right[atRight]) {
      takeRight()
      atLeft++
    }
    // Shared, but not the one whose turn it is: it comes where the applier put it.
    else if (atRight < right.length && shared[atShared] !== undefined && shared[atShared] !== element) atLeft++
    else {
      if (done.has(element)) atLeft++
      if (atRight < right.length) takeRight()
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
