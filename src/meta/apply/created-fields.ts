/**
 * The fields that whoever creates an object owns, straight as FieldsV1: one walk over the object beside Go's empty
 * object of its kind, in the order FieldsV1 has, without the sets that changes to existing objects need. It yields what
 * `compareTyped` and `encodeFieldsV1` would, several times faster: every create goes through here.
 */
import { compareText, sortTexts } from '#lib/go-text.ts'

import { zeroValue } from '../codec/decode.ts'
import type { KubeObject } from '../object.ts'
import type { FieldSchema, StructSchema } from '../schema.ts'
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
import { type FieldSet, fieldPaths } from './field-set.ts'
import type { FieldsV1 } from './fields-v1.ts'
import { fieldElement, type PathElement, sortElements } from './path-element.ts'

/** Fields of every object that nobody owns: they say which object it is, or the server writes them. */
export const NOT_OWNED: FieldSet = fieldPaths(
  'apiVersion',
  'kind',
  'metadata',
  'metadata.name',
  'metadata.namespace',
  'metadata.creationTimestamp',
  'metadata.selfLink',
  'metadata.uid',
  'metadata.clusterName',
  'metadata.generation',
  'metadata.managedFields',
  'metadata.resourceVersion',
)

const empties = new WeakMap<object, KubeObject>()

/** What Go has before anything is set: fields that are written even when empty are there already. Not to be changed. */
export function emptyObject(type: Typed | undefined): KubeObject {
  if (type === undefined) return { metadata: {} }
  let empty = empties.get(type.schema)
  if (empty === undefined) {
    empty = { metadata: {}, ...(zeroValue(type.schema) as object) }
    empties.set(type.schema, empty)
  }
  return empty
}

/** Undefined when there are none. `excluded` fields, and all below them, are not owned. Throws ItemFault. */
export function createdFields(type: Typed, object: KubeObject, excluded?: FieldSet): FieldsV1 | undefined {
  const pair = [emptyObject(type) as unknown as Entries, object as unknown as Entries] as const
  return entriesAdded(type, pair, { except: NOT_OWNED, excluded })
}

interface Skip {
  /** Paths that are no members. */
  readonly except?: FieldSet | undefined
  /** Paths that are left out with all below them. */
  readonly excluded?: FieldSet | undefined
}

const SKIP_NOTHING: Skip = {}

function entriesAdded(
  type: Typed,
  [before, after]: readonly [Entries, Entries],
  skip: Skip,
  isMember = false,
): FieldsV1 | undefined {
  const { schema } = type
  if (schema.type !== 'struct' || schema.preserveUnknown) return keysAdded(type, [before, after], skip, isMember)
  let fields: Record<string, FieldsV1> | undefined
  for (const { name, element, place, isInherited } of sortedFields(schema)) {
    const value = isInherited && !Object.hasOwn(after, name) ? undefined : after[name]
    if (value === undefined || isUncounted(place, value)) continue
    const was = isInherited && !Object.hasOwn(before, name) ? undefined : before[name]
    const added = added1(place, [was, value], element, skip)
    if (added !== undefined) (fields ??= nodeOf(isMember))[element] = added
  }
  return fields
}

/** A node to be filled. The mark comes first: copying a large node to add it would take as long as making it. */
function nodeOf(isMember: boolean): Record<string, FieldsV1> {
  return isMember ? { '.': LEAF } : {}
}

function keysAdded(
  type: Typed,
  [before, after]: readonly [Entries, Entries],
  skip: Skip,
  isMember: boolean,
): FieldsV1 | undefined {
  const names = sortTexts(Object.keys(after))
  let fields: Record<string, FieldsV1> | undefined
  for (const name of names) {
    const element = fieldElement(name)
    const was = Object.hasOwn(before, name) ? before[name] : undefined
    const added = added1(entryType(type, name), [was, after[name]], element, skip)
    if (added !== undefined) (fields ??= nodeOf(isMember))[element] = added
  }
  return fields
}

const LEAF: FieldsV1 = Object.freeze({})

/** The node of one entry; undefined when it is as it was. */
function added1(
  type: Typed,
  [before, after]: readonly unknown[],
  element: PathElement,
  skip: Skip,
): FieldsV1 | undefined {
  const { except, excluded } = skip
  if (excluded?.members.has(element)) return undefined
  const isMember = isAdded(type, before, after) && !except?.members.has(element)
  const inner = except || excluded ? skipBelow(skip, element) : SKIP_NOTHING
  return partsAdded(type, [before, after], inner, isMember) ?? (isMember ? LEAF : undefined)
}

function skipBelow({ except, excluded }: Skip, element: PathElement): Skip {
  return { except: except?.children.get(element), excluded: excluded?.children.get(element) }
}

function isAdded(type: Typed, before: unknown, after: unknown): boolean {
  if (before === undefined) return true
  const isLeaf = (after !== null && atomOf(type, after) === 'leaf') || (isHollow(before) && isHollow(after))
  return isLeaf && !equalValues(before, after)
}

function partsAdded(
  type: Typed,
  [before, after]: readonly unknown[],
  skip: Skip,
  isMember: boolean,
): FieldsV1 | undefined {
  if (typeof after !== 'object' || after === null) return undefined
  const atom = atomOf(type, after)
  if (atom === 'leaf') return undefined
  const map = asMap(after)
  if (map !== undefined) return entriesAdded(type, [asMap(before) ?? {}, map], skip, isMember)
  return itemsAdded(type, asList(after) ?? [], isMember)
}

/** Go's empty objects have empty lists only, so every item is new. One given twice is owned whole. */
function itemsAdded(type: Typed, list: readonly unknown[], isMember: boolean): FieldsV1 | undefined {
  if (list.length === 0) return undefined
  const items = new Map<PathElement, unknown>()
  for (const item of list) {
    const element = itemElement(type, item)
    items.set(element, items.has(element) ? undefined : item)
  }
  const place = itemType(type)
  const fields = nodeOf(isMember)
  for (const element of sortElements([...items.keys()])) {
    fields[element] = partsAdded(place, [undefined, items.get(element)], SKIP_NOTHING, true) ?? LEAF
  }
  return fields
}

interface NamedPlace {
  readonly name: string
  readonly element: PathElement
  readonly place: Typed
  /** Objects of JavaScript answer to that name even when they have no such field: `constructor`. */
  readonly isInherited: boolean
}

const sorted = new WeakMap<StructSchema, readonly NamedPlace[]>()

function sortedFields(schema: StructSchema): readonly NamedPlace[] {
  let fields = sorted.get(schema)
  if (fields === undefined) {
    fields = [...schema.fields.values()].toSorted((a, b) => compareText(a.name, b.name)).map(namedPlace)
    sorted.set(schema, fields)
  }
  return fields
}

function namedPlace(field: FieldSchema): NamedPlace {
  const { name, schema } = field
  return { name, element: fieldElement(name), place: { schema, field }, isInherited: name in Object.prototype }
}
