/** Compares two values of one type and returns the differing field paths as sets. */
import { runAtOnce, shouldYield, type Steps } from '#lib/time-slicing.ts'

import {
  asList,
  asMap,
  atomOf,
  type Entries,
  entryType,
  isHollow,
  isUncounted,
  itemElement,
  itemType,
  type TypeRef,
} from './atom.ts'
import { equalValues } from './equal.ts'
import { EMPTY_SET, type FieldSet, FieldSetBuilder } from './field-set.ts'
import { fieldElement, type PathElement } from './path-element.ts'

export interface Comparison {
  readonly added: FieldSet
  readonly modified: FieldSet
  readonly removed: FieldSet
}

export const NO_CHANGES: Comparison = { added: EMPTY_SET, modified: EMPTY_SET, removed: EMPTY_SET }

interface Builders {
  readonly added: FieldSetBuilder
  readonly modified: FieldSetBuilder
  readonly removed: FieldSetBuilder
}

/** Throws ItemFault. */
export function compareTyped(type: TypeRef, before: unknown, after: unknown): Comparison {
  return runAtOnce(compareInSteps(type, before, after))
}

/** The same, yielding to the event loop. */
export function* compareInSteps(type: TypeRef, before: unknown, after: unknown): Steps<Comparison> {
  const into: Builders = {
    added: new FieldSetBuilder(),
    modified: new FieldSetBuilder(),
    removed: new FieldSetBuilder(),
  }
  yield* compareInside(type, before, after, into)
  return { added: into.added.build(), modified: into.modified.build(), removed: into.removed.build() }
}

/** The parts of two values; an absent value and a leaf have none. */
function* compareInside(type: TypeRef, before: unknown, after: unknown, into: Builders): Steps<void> {
  const [was, is] = [asMap(before), asMap(after)]
  if (was !== undefined || is !== undefined) yield* compareEntries(type, was ?? {}, is ?? {}, into)
  else yield* compareItems(type, asList(before) ?? [], asList(after) ?? [], into)
}

function* compareEntries(type: TypeRef, before: Entries, after: Entries, into: Builders): Steps<void> {
  for (const name of Object.keys(before)) {
    if (shouldYield()) yield
    const next = Object.hasOwn(after, name) ? after[name] : undefined
    // Most of an object is unchanged, and equality is cheaper to check than differences.
    if (equalValues(before[name], next)) continue
    const steps = compareAt(entryType(type, name), fieldElement(name), [before[name], next], into)
    if (steps !== undefined) yield* steps
  }
  for (const name of Object.keys(after)) {
    if (shouldYield()) yield
    if (Object.hasOwn(before, name)) continue
    const steps = compareAt(entryType(type, name), fieldElement(name), [undefined, after[name]], into)
    if (steps !== undefined) yield* steps
  }
}

function* compareItems(
  type: TypeRef,
  before: readonly unknown[],
  after: readonly unknown[],
  into: Builders,
): Steps<void> {
  const old = yield* itemsByElement(type, before)
  const fresh = yield* itemsByElement(type, after)
  const items = itemType(type)
  for (const element of old.keys()) {
    if (shouldYield()) yield
    const steps = compareItem(items, element, [old.get(element), fresh.get(element)], into)
    if (steps !== undefined) yield* steps
  }
  for (const element of fresh.keys()) {
    if (shouldYield()) yield
    if (old.has(element)) continue
    const steps = compareItem(items, element, [undefined, fresh.get(element)], into)
    if (steps !== undefined) yield* steps
  }
}

/** Items with the same path element. */
class DuplicateItems {
  readonly items: unknown[]

  constructor(items: unknown[]) {
    this.items = items
  }
}

/** Items by element; duplicates are grouped. */
function* itemsByElement(type: TypeRef, items: readonly unknown[]): Steps<Map<PathElement, unknown>> {
  const found = new Map<PathElement, unknown>()
  for (const item of items) {
    if (shouldYield()) yield
    const element = itemElement(type, item)
    const before = found.get(element)
    if (before === undefined) found.set(element, item)
    else if (before instanceof DuplicateItems) before.items.push(item)
    else found.set(element, new DuplicateItems([before, item]))
  }
  return found
}

/**
 * Items given more than once look the same, so they are compared and owned together. Returns the remaining steps; undefined
 * if it is done.
 */
function compareItem(type: TypeRef, element: PathElement, [was, is]: Pair, into: Builders): Steps<void> | undefined {
  if (was instanceof DuplicateItems && is instanceof DuplicateItems) {
    if (!equalValues(was.items, is.items)) into.modified.add(element)
    return undefined
  }
  if (was instanceof DuplicateItems) {
    into.removed.add(element)
    return is === undefined ? undefined : compareAt(type, element, [undefined, is], into)
  }
  if (is instanceof DuplicateItems) {
    into.added.add(element)
    return was === undefined ? undefined : compareAt(type, element, [was, undefined], into)
  }
  return compareAt(type, element, [was, is], into)
}

type Pair = readonly [before: unknown, after: unknown]

/** The remaining steps; undefined if it is done. */
function compareAt(type: TypeRef, element: PathElement, [before, sent]: Pair, into: Builders): Steps<void> | undefined {
  const after = isUncounted(type, sent) ? undefined : sent
  if (before === after) return undefined
  const [was, is] = [partsOf(type, before), partsOf(type, after)]
  // Also if neither has parts: the only possible difference is then null versus `{}`.
  const isLeafPair = isLeaf(type, before) || isLeaf(type, after) || (was === undefined && is === undefined)
  if (before === undefined) into.added.add(element)
  else if (after === undefined) into.removed.add(element)
  else if (isLeafPair && !equalValues(before, after)) into.modified.add(element)
  if (was === undefined && is === undefined) return undefined
  return compareInside(type, was, is, {
    added: into.added.at(element),
    modified: into.modified.at(element),
    removed: into.removed.at(element),
  })
}

function isLeaf(type: TypeRef, value: unknown): boolean {
  return value !== null && atomOf(type, value) === 'leaf'
}

/** Undefined for atomic and empty values. */
function partsOf(type: TypeRef, value: unknown): unknown {
  return atomOf(type, value) !== 'leaf' && !isHollow(value) ? value : undefined
}
