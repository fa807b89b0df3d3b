/** What changed between two values of one type, as sets of paths: the raw material of ownership. */
import { atOnce, isDue, type Steps } from '#lib/slices.ts'

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
  type Typed,
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
export function compareTyped(type: Typed, before: unknown, after: unknown): Comparison {
  return atOnce(compareInSteps(type, before, after))
}

/** The same, with turns for others. */
export function* compareInSteps(type: Typed, before: unknown, after: unknown): Steps<Comparison> {
  const into: Builders = {
    added: new FieldSetBuilder(),
    modified: new FieldSetBuilder(),
    removed: new FieldSetBuilder(),
  }
  yield* compareInside(type, before, after, into)
  return { added: into.added.build(), modified: into.modified.build(), removed: into.removed.build() }
}

/** The parts of two values; a value that is not there, or is a leaf, has none. */
function* compareInside(type: Typed, before: unknown, after: unknown, into: Builders): Steps<void> {
  const [was, is] = [asMap(before), asMap(after)]
  if (was !== undefined || is !== undefined) yield* compareEntries(type, was ?? {}, is ?? {}, into)
  else yield* compareItems(type, asList(before) ?? [], asList(after) ?? [], into)
}

function* compareEntries(type: Typed, before: Entries, after: Entries, into: Builders): Steps<void> {
  for (const name of Object.keys(before)) {
    if (isDue()) yield
    const next = Object.hasOwn(after, name) ? after[name] : undefined
    // Most of an object is as it was: seeing that costs less than looking for what changed.
    if (!equalValues(before[name], next))
      yield* compareAt(entryType(type, name), fieldElement(name), [before[name], next], into)
  }
  for (const name of Object.keys(after)) {
    if (isDue()) yield
    if (!Object.hasOwn(before, name))
      yield* compareAt(entryType(type, name), fieldElement(name), [undefined, after[name]], into)
  }
}

function* compareItems(
  type: Typed,
  before: readonly unknown[],
  after: readonly unknown[],
  into: Builders,
): Steps<void> {
  const old = Map.groupBy(before, (item) => itemElement(type, item))
  const fresh = Map.groupBy(after, (item) => itemElement(type, item))
  const items = itemType(type)
  for (const element of new Set([...old.keys(), ...fresh.keys()])) {
    if (isDue()) yield
    const [was, is] = [old.get(element) ?? [], fresh.get(element) ?? []]
    const single = was.length <= 1 && is.length <= 1
    // Items given more than once cannot be told apart, so they are compared and owned together.
    if (!single && was.length > 1 && is.length > 1) {
      if (!equalValues(was, is)) into.modified.add(element)
    } else if (single) yield* compareAt(items, element, [was[0], is[0]], into)
    else if (was.length > 1) {
      if (is.length === 1) yield* compareAt(items, element, [undefined, is[0]], into)
      into.removed.add(element)
    } else {
      if (was.length === 1) yield* compareAt(items, element, [was[0], undefined], into)
      into.added.add(element)
    }
  }
}

type Pair = readonly [before: unknown, after: unknown]

function* compareAt(type: Typed, element: PathElement, [before, sent]: Pair, into: Builders): Steps<void> {
  const after = isUncounted(type, sent) ? undefined : sent
  if (before === after) return
  const [was, is] = [partsOf(type, before), partsOf(type, after)]
  // Also when neither has parts: the difference between null and `{}` is then the only one there can be.
  const isLeafPair = isLeaf(type, before) || isLeaf(type, after) || (was === undefined && is === undefined)
  if (before === undefined) into.added.add(element)
  else if (after === undefined) into.removed.add(element)
  else if (isLeafPair && !equalValues(before, after)) into.modified.add(element)
  if (was === undefined && is === undefined) return
  yield* compareInside(type, was, is, {
    added: into.added.at(element),
    modified: into.modified.at(element),
    removed: into.removed.at(element),
  })
}

function isLeaf(type: Typed, value: unknown): boolean {
  return value !== null && atomOf(type, value) === 'leaf'
}

/** Undefined for what is owned whole, and for what has none. */
function partsOf(type: Typed, value: unknown): unknown {
  return atomOf(type, value) !== 'leaf' && !isHollow(value) ? value : undefined
}
