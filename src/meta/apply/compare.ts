/** What changed between two values of one type, as sets of paths: the raw material of ownership. */
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
  const into: Builders = {
    added: new FieldSetBuilder(),
    modified: new FieldSetBuilder(),
    removed: new FieldSetBuilder(),
  }
  compareInside(type, before, after, into)
  return { added: into.added.build(), modified: into.modified.build(), removed: into.removed.build() }
}

/** The parts of two values; a value that is not there, or is a leaf, has none. */
function compareInside(type: Typed, before: unknown, after: unknown, into: Builders): void {
  const [was, is] = [asMap(before), asMap(after)]
  if (was !== undefined || is !== undefined) compareEntries(type, was ?? {}, is ?? {}, into)
  else compareItems(type, asList(before) ?? [], asList(after) ?? [], into)
}

function compareEntries(type: Typed, before: Entries, after: Entries, into: Builders): void {
  for (const name of Object.keys(before)) {
    const next = Object.hasOwn(after, name) ? after[name] : undefined
    if (next !== before[name]) compareAt(entryType(type, name), fieldElement(name), [before[name], next], into)
  }
  for (const name of Object.keys(after)) {
    if (!Object.hasOwn(before, name))
      compareAt(entryType(type, name), fieldElement(name), [undefined, after[name]], into)
  }
}

function compareItems(type: Typed, before: readonly unknown[], after: readonly unknown[], into: Builders): void {
  const old = Map.groupBy(before, (item) => itemElement(type, item))
  const fresh = Map.groupBy(after, (item) => itemElement(type, item))
  const items = itemType(type)
  for (const element of new Set([...old.keys(), ...fresh.keys()])) {
    const [was, is] = [old.get(element) ?? [], fresh.get(element) ?? []]
    const single = was.length <= 1 && is.length <= 1
    // Items given more than once cannot be told apart, so they are compared and owned together.
    if (!single && was.length > 1 && is.length > 1) {
      if (!equalValues(was, is)) into.modified.add(element)
    } else if (single) compareAt(items, element, [was[0], is[0]], into)
    else if (was.length > 1) {
      if (is.length === 1) compareAt(items, element, [undefined, is[0]], into)
      into.removed.add(element)
    } else {
      if (was.length === 1) compareAt(items, element, [was[0], undefined], into)
      into.added.add(element)
    }
  }
}

type Pair = readonly [before: unknown, after: unknown]

function compareAt(type: Typed, element: PathElement, [before, sent]: Pair, into: Builders): void {
  const after = isUncounted(type, sent) ? undefined : sent
  if (before === after) return
  if (before === undefined) into.added.add(element)
  else if (after === undefined) into.removed.add(element)
  else if (isLeafPair(type, before, after) && !equalValues(before, after)) into.modified.add(element)
  if (!hasParts(type, before) && !hasParts(type, after)) return
  compareInside(type, partsOf(type, before), partsOf(type, after), {
    added: into.added.at(element),
    modified: into.modified.at(element),
    removed: into.removed.at(element),
  })
}

/** Also when both are hollow: the difference between null and `{}` is then the only one there can be. */
function isLeafPair(type: Typed, before: unknown, after: unknown): boolean {
  if (before !== null && atomOf(type, before) === 'leaf') return true
  if (after !== null && atomOf(type, after) === 'leaf') return true
  return isHollow(before) && isHollow(after)
}

function hasParts(type: Typed, value: unknown): boolean {
  return !isHollow(value) && atomOf(type, value) !== 'leaf'
}

function partsOf(type: Typed, value: unknown): unknown {
  return hasParts(type, value) ? value : undefined
}
