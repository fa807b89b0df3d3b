/**
 * The fields that whoever creates an object owns, straight as FieldsV1: one walk over the object beside Go's empty
 * object of its kind, in the order FieldsV1 has, without the sets that changes to existing objects need. It yields what
 * `compareTyped` and `encodeFieldsV1` would, several times faster: every create goes through here.
 */
import { compareText } from '#lib/go-text.ts'

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
  return entriesAdded(type, emptyObject(type) as unknown as Entries, object as unknown as Entries, {
    except: NOT_OWNED,
    excluded,
  })
}

interface Skip {
  /** Paths that are no members. */
  readonly except?: FieldSet | undefined
  /** Paths that are left out with all below them. */
  readonly excluded?: FieldSet | undefined
}

const SKIP_NOTHING: Skip = {}

function entriesAdded(type: Typed, before: Entries, after: Entries, skip: Skip): FieldsV1 | undefined {
  const { schema } = type
  if (schema.type !== 'struct' || schema.preserveUnknown) return keysAdded(type, before, after, skip)
  let fields: Record<string, FieldsV1> | undefined
  for (const { name, element, place, isInherited } of sortedFields(schema)) {
    const value = isInherited && !Object.hasOwn(after, name) ? undefined : after[name]
    if (value === undefined || isUncounted(place, value)) continue
    const was = isInherited && !Object.hasOwn(before, name) ? undefined : before[name]
    const added = added1(place, [was, value], element, skip)
    if (added !== undefined) (fields ??= {})[element] = added
  }
  return fields
}

function keysAdded(type: Typed, before: Entries, after: Entries, skip: Skip): FieldsV1 | undefined {
  const names = Object.keys(after)
  if (names.length > 1) names.sort(compareText)
  let fields: Record<string, FieldsV1> | undefined
  for (const name of names) {
    const element = fieldElement(name)
    const was = Object.hasOwn(before, name) ? before[name] : undefined
    const added = added1(entryType(type, name), [was, after[name]], element, skip)
    if (added !== undefined) (fields ??= {})[element] = added
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
  const below = partsAdded(type, before, after, except || excluded ? skipBelow(skip, element) : SKIP_NOTHING)
  if (below === undefined) return isMember ? LEAF : undefined
  return isMember ? { '.': LEAF, ...below } : below
}

function skipBelow({ except, excluded }: Skip, element: PathElement): Skip {
  return { except: except?.children.get(element), excluded: excluded?.children.get(element) }
}

function isAdded(type: Typed, before: unknown, after: unknown): boolean {
  if (before === undefined) return true
  const isLeaf = (after !== null && atomOf(type, after) === 'leaf') || (isHollow(before) && isHollow(after))
  return isLeaf && !equalValues(before, after)
}

function partsAdded(type: Typed, before: unknown, after: unknown, skip: Skip): FieldsV1 | undefined {
  if (typeof after !== 'object' || after === null) return undefined
  const atom = atomOf(type, after)
  if (atom === 'leaf') return undefined
  const map = asMap(after)
  if (map !== undefined) return entriesAdded(type, asMap(before) ?? {}, map, skip)
  return itemsAdded(type, asList(after) ?? [])
}

/** Go's empty objects have empty lists only, so every item is new. One given twice is owned whole. */
function itemsAdded(type: Typed, list: readonly unknown[]): FieldsV1 | undefined {
  if (list.length === 0) return undefined
  const items = new Map<PathElement, unknown>()
  for (const item of list) {
    const element = itemElement(type, item)
    items.set(element, items.has(element) ? undefined : item)
  }
  const place = itemType(type)
  const fields: Record<string, FieldsV1> = {}
  for (const element of sortElements([...items.keys()])) {
    const below = partsAdded(place, undefined, items.get(element), SKIP_NOTHING)
    fields[element] = below === undefined ? LEAF : { '.': LEAF, ...below }
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
