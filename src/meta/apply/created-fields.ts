/**
 * Computes the FieldsV1 of a created object in one walk. The result equals that of `compareTyped` and `encodeFieldsV1`,
 * several times faster.
 */
import { compareText, sortTexts } from '#lib/go/text.ts'

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
  type TypeRef,
} from './atom.ts'
import { equalValues } from './equal.ts'
import { type FieldSet, fieldPaths } from './field-set.ts'
import type { FieldsV1 } from './fields-v1.ts'
import { fieldElement, type PathElement, sortElements } from './path-element.ts'

/** Fields without an owner: they identify the object, or the server writes them. */
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

/** Go's empty object: contains fields that are written even if empty. Must not be changed. */
export function emptyObject(type: TypeRef | undefined): KubeObject {
  if (type === undefined) return { metadata: {} }
  let empty = empties.get(type.schema)
  if (empty === undefined) {
    empty = { metadata: {}, ...(zeroValue(type.schema) as object) }
    empties.set(type.schema, empty)
  }
  return empty
}

/** Undefined without any. `excluded` fields and everything below are not owned. Throws ItemFault. */
export function createdFields(type: TypeRef, object: KubeObject, excluded?: FieldSet): FieldsV1 | undefined {
  const pair = [emptyObject(type) as unknown as Entries, object as unknown as Entries] as const
  return entriesAdded(type, pair, { except: NOT_OWNED, excluded })
}

interface Skip {
  /** Paths that are no members. */
  readonly except?: FieldSet | undefined
  /** Paths that are omitted with everything below. */
  readonly excluded?: FieldSet | undefined
}

const SKIP_NOTHING: Skip = {}

function entriesAdded(
  type: TypeRef,
  [before, after]: readonly [Entries, Entries],
  skip: Skip,
  isMember = false,
): FieldsV1 | undefined {
  const { schema } = type
  if (schema.type !== 'struct' || schema.preserveUnknown) return keysAdded(type, [before, after], skip, isMember)
  let fields: Record<string, FieldsV1> | undefined
  for (const { name, element, typeRef, isInherited } of sortedFields(schema)) {
    const value = isInherited && !Object.hasOwn(after, name) ? undefined : after[name]
    if (value === undefined || isUncounted(typeRef, value)) continue
    const was = isInherited && !Object.hasOwn(before, name) ? undefined : before[name]
    const added = added1(typeRef, [was, value], element, skip)
    if (added !== undefined) (fields ??= nodeOf(isMember))[element] = added
  }
  return fields
}

/** A node to fill. Its mark is first, because adding it later would copy a large node. */
function nodeOf(isMember: boolean): Record<string, FieldsV1> {
  return isMember ? { '.': LEAF } : {}
}

function keysAdded(
  type: TypeRef,
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

/** The node of one entry; undefined if it is unchanged. */
function added1(
  type: TypeRef,
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

function isAdded(type: TypeRef, before: unknown, after: unknown): boolean {
  if (before === undefined) return true
  const isLeaf = (after !== null && atomOf(type, after) === 'leaf') || (isHollow(before) && isHollow(after))
  return isLeaf && !equalValues(before, after)
}

function partsAdded(
  type: TypeRef,
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

/** Lists of Go's empty objects are empty, so every item is new. A duplicate item is owned whole. */
function itemsAdded(type: TypeRef, list: readonly unknown[], isMember: boolean): FieldsV1 | undefined {
  if (list.length === 0) return undefined
  const items = new Map<PathElement, unknown>()
  for (const item of list) {
    const element = itemElement(type, item)
    items.set(element, items.has(element) ? undefined : item)
  }
  const typeRef = itemType(type)
  const fields = nodeOf(isMember)
  for (const element of sortElements([...items.keys()])) {
    fields[element] = partsAdded(typeRef, [undefined, items.get(element)], SKIP_NOTHING, true) ?? LEAF
  }
  return fields
}

interface NamedType {
  readonly name: string
  readonly element: PathElement
  readonly typeRef: TypeRef
  /** Objects inherit members such as `constructor`, which are no fields. */
  readonly isInherited: boolean
}

const sorted = new WeakMap<StructSchema, readonly NamedType[]>()

function sortedFields(schema: StructSchema): readonly NamedType[] {
  let fields = sorted.get(schema)
  if (fields === undefined) {
    fields = [...schema.fields.values()].toSorted((a, b) => compareText(a.name, b.name)).map(namedType)
    sorted.set(schema, fields)
  }
  return fields
}

function namedType(field: FieldSchema): NamedType {
  const { name, schema } = field
  return { name, element: fieldElement(name), typeRef: { schema, field }, isInherited: name in Object.prototype }
}
