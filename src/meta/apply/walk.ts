/**
 * Walks over a typed value: collects the paths that it sets, or removes paths from it. The walk yields to the event
 * loop, because an object may have fifty thousand fields.
 */
import { runAtOnce, shouldYield, type Steps } from '#lib/time-slicing.ts'

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
  type TypeRef,
} from './atom.ts'
import { type FieldSet, FieldSetBuilder } from './field-set.ts'
import { fieldElement, fieldName, type PathElement } from './path-element.ts'

/** The paths that `value` sets, which its applier owns. */
export function fieldSetOf(type: TypeRef, value: unknown): FieldSet {
  return runAtOnce(fieldSetInSteps(type, value))
}

export function* fieldSetInSteps(type: TypeRef, value: unknown): Steps<FieldSet> {
  const builder = new FieldSetBuilder()
  yield* addFields(type, value, builder)
  return builder.build()
}

function* addFields(type: TypeRef, value: unknown, into: FieldSetBuilder): Steps<void> {
  const atom = atomOf(type, value)
  const map = asMap(value)
  const list = asList(value)
  if (atom === 'map' && map !== undefined) yield* addEntries(type, map, into)
  else if ((atom === 'set' || atom === 'keyed') && list !== undefined) yield* addItems(type, list, into)
}

function* addEntries(type: TypeRef, map: Entries, into: FieldSetBuilder): Steps<void> {
  for (const name of Object.keys(map)) {
    if (shouldYield()) yield
    const value = map[name]
    const entry = entryType(type, name)
    const element = fieldElement(name)
    const isLeaf = atomOf(entry, value) === 'leaf'
    const isEmpty = value === null || (!isLeaf && asMap(value) !== undefined && isHollow(value))
    if (isLeaf || isEmpty || !isDeclared(type, name)) into.add(element)
    if (!isLeaf) yield* addFields(entry, value, into.at(element))
  }
}

/** An item is owned as a member of its list, in addition to its contents. A duplicate item is owned whole. */
function* addItems(type: TypeRef, list: readonly unknown[], into: FieldSetBuilder): Steps<void> {
  const elements: PathElement[] = []
  const once = new Set<PathElement>()
  const repeated = new Set<PathElement>()
  for (const item of list) {
    if (shouldYield()) yield
    const element = elementOf(type, item)
    elements.push(element)
    ;(once.has(element) ? repeated : once).add(element)
  }
  for (let at = 0; at < elements.length; at++) {
    if (shouldYield()) yield
    const element = elements[at] as PathElement
    const item = list[at]
    into.add(element)
    const hasParts = typeof item === 'object' && item !== null
    if (hasParts && !repeated.has(element)) yield* addFields(itemType(type), item, into.at(element))
  }
}

/**
 * These walks also visit partially removed values with items that have lost their keys. Such an item has no path and
 * no owner, and it is removed only with its list.
 */
function elementOf(type: TypeRef, item: unknown): PathElement {
  try {
    return itemElement(type, item)
  } catch (error) {
    if (error instanceof ItemFault) return ''
    throw error
  }
}

/** `value` without the paths of `removed` and everything below. An emptied map or list becomes null. */
export function* removeFields(type: TypeRef, value: unknown, removed: FieldSet): Steps<unknown> {
  const map = asMap(value)
  const list = asList(value)
  const atom = atomOf(type, value)
  if (atom === 'map' && map !== undefined) return yield* removeEntries(type, map, removed)
  if ((atom === 'set' || atom === 'keyed') && list !== undefined) return yield* removeItems(type, list, removed)
  // An owner of a part of an atomic value removes all of it.
  return typeof value === 'object' ? null : value
}

function* removeEntries(type: TypeRef, map: Entries, removed: FieldSet): Steps<unknown> {
  const kept: Record<string, unknown> = {}
  for (const name of Object.keys(map)) {
    if (shouldYield()) yield
    const value = map[name]
    const element = fieldElement(name)
    if (removed.members.has(element)) continue
    const below = removed.children.get(element)
    put(kept, name, below === undefined ? value : yield* removeFields(entryType(type, name), value, below))
  }
  return Object.keys(kept).length === 0 ? null : kept
}

function* removeItems(type: TypeRef, list: readonly unknown[], removed: FieldSet): Steps<unknown> {
  const kept: unknown[] = []
  for (const item of list) {
    if (shouldYield()) yield
    const element = elementOf(type, item)
    if (removed.members.has(element)) continue
    const below = removed.children.get(element)
    kept.push(below === undefined ? item : yield* removeFields(itemType(type), item, below))
  }
  return kept.length === 0 ? null : kept
}

/**
 * The set with every ancestor struct field as a member, so that removing a whole field does not depend on who owns the
 * field itself.
 */
export function withNamedFields(type: TypeRef | undefined, set: FieldSet): FieldSet {
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

function belowNamed(type: TypeRef | undefined, element: PathElement): TypeRef | undefined {
  if (type === undefined) return undefined
  const name = fieldName(element)
  return name === undefined ? itemType(type) : entryType(type, name)
}
