/**
 * The walks over one typed value: which paths it sets, and what is left of it when paths are taken away. Others have their
 * turn in between: an object may have fifty thousand fields.
 */
import { atOnce, isDue, type Steps } from '#lib/slices.ts'

import { put } from '../patch/json-map.ts'
import {
  asList,
  asMap,
  atomOf,
  type Entries,
  entryType,
  isDeclared,
  isHollow,
  ItemFault,
  itemElement,
  itemType,
  type Typed,
} from './atom.ts'
import { type FieldSet, FieldSetBuilder } from './field-set.ts'
import { fieldElement, fieldName, type PathElement } from './path-element.ts'

/** The paths that `value` sets: what an applier of it owns. */
export function fieldSetOf(type: Typed, value: unknown): FieldSet {
  return atOnce(fieldSetInSteps(type, value))
}

export function* fieldSetInSteps(type: Typed, value: unknown): Steps<FieldSet> {
  const builder = new FieldSetBuilder()
  yield* addFields(type, value, builder)
  return builder.build()
}

function* addFields(type: Typed, value: unknown, into: FieldSetBuilder): Steps<void> {
  const atom = atomOf(type, value)
  const map = asMap(value)
  const list = asList(value)
  if (atom === 'map' && map !== undefined) yield* addEntries(type, map, into)
  else if ((atom === 'set' || atom === 'keyed') && list !== undefined) yield* addItems(type, list, into)
}

function* addEntries(type: Typed, map: Entries, into: FieldSetBuilder): Steps<void> {
  for (const name of Object.keys(map)) {
    if (isDue()) yield
    const value = map[name]
    const entry = entryType(type, name)
    const element = fieldElement(name)
    const isLeaf = atomOf(entry, value) === 'leaf'
    const isEmpty = value === null || (!isLeaf && asMap(value) !== undefined && isHollow(value))
    if (isLeaf || isEmpty || !isDeclared(type, name)) into.add(element)
    if (!isLeaf) yield* addFields(entry, value, into.at(element))
  }
}

/** An item is owned as a member of its list, besides what is in it. An item given twice is owned whole. */
function* addItems(type: Typed, list: readonly unknown[], into: FieldSetBuilder): Steps<void> {
  const elements = list.map((item) => elementOf(type, item))
  const once = new Set<PathElement>()
  const repeated = new Set<PathElement>()
  for (const element of elements) (once.has(element) ? repeated : once).add(element)
  for (const [at, element] of elements.entries()) {
    if (isDue()) yield
    into.add(element)
    if (!repeated.has(element)) yield* addFields(itemType(type), list[at], into.at(element))
  }
}

/**
 * These walks also see values that are half taken apart, with items that have lost their keys. Such an item is at a path
 * that names nothing: nobody owns it, and it is removed only along with its list.
 */
function elementOf(type: Typed, item: unknown): PathElement {
  try {
    return itemElement(type, item)
  } catch (error) {
    if (error instanceof ItemFault) return ''
    throw error
  }
}

/** `value` without the paths of `removed` and all below them. A map or list that loses everything becomes null. */
export function* removeFields(type: Typed, value: unknown, removed: FieldSet): Steps<unknown> {
  const map = asMap(value)
  const list = asList(value)
  const atom = atomOf(type, value)
  if (atom === 'map' && map !== undefined) return yield* removeEntries(type, map, removed)
  if ((atom === 'set' || atom === 'keyed') && list !== undefined) return yield* removeItems(type, list, removed)
  // Whoever owned something inside of what is now owned whole takes all of it along.
  return typeof value === 'object' ? null : value
}

function* removeEntries(type: Typed, map: Entries, removed: FieldSet): Steps<unknown> {
  const kept: Record<string, unknown> = {}
  for (const name of Object.keys(map)) {
    if (isDue()) yield
    const value = map[name]
    const element = fieldElement(name)
    if (removed.members.has(element)) continue
    const below = removed.children.get(element)
    put(kept, name, below === undefined ? value : yield* removeFields(entryType(type, name), value, below))
  }
  return Object.keys(kept).length === 0 ? null : kept
}

function* removeItems(type: Typed, list: readonly unknown[], removed: FieldSet): Steps<unknown> {
  const kept: unknown[] = []
  for (const item of list) {
    if (isDue()) yield
    const element = elementOf(type, item)
    if (removed.members.has(element)) continue
    const below = removed.children.get(element)
    kept.push(below === undefined ? item : yield* removeFields(itemType(type), item, below))
  }
  return kept.length === 0 ? null : kept
}

/**
 * A set with every struct field on the way to its paths as a member too: removing a whole named field must not depend
 * on whether somebody owns the field itself or only what is in it.
 */
export function withNamedFields(type: Typed | undefined, set: FieldSet): FieldSet {
  if (set.children.size === 0) return set
  const members = new Set(set.members)
  const children = new Map<PathElement, FieldSet>()
  for (const [element, child] of set.children) {
    const name = fieldName(element)
    if (name !== undefined && type !== undefined && isDeclared(type, name)) members.add(element)
    children.set(element, withNamedFields(belowNamed(type, element), child))
  }
  return { members, children }
}

function belowNamed(type: Typed | undefined, element: PathElement): Typed | undefined {
  if (type === undefined) return undefined
  const name = fieldName(element)
  return name === undefined ? itemType(type) : entryType(type, name)
}
