/** Classifies a schema for server-side apply: an atomic leaf, a map, a set, or a list keyed by fields of its items. */
import { goStrings } from '#lib/go/text.ts'

import type { FieldSchema, ListType, Schema } from '../schema.ts'
import { type ItemKey, keyElement, type PathElement, valueElement } from './path-element.ts'

/** A typed position: its schema, and the field, which may define how it merges. */
export interface TypeRef {
  readonly schema: Schema
  readonly field?: FieldSchema | undefined
}

export type Atom = 'leaf' | 'map' | 'set' | 'keyed'

const LIST_ATOMS: Readonly<Record<ListType, Atom>> = { atomic: 'leaf', set: 'set', map: 'keyed' }

/** `value` matters only for untyped positions. */
export function atomOf({ schema, field }: TypeRef, value: unknown): Atom {
  switch (schema.type) {
    case 'struct':
    case 'map':
      return (field?.mapType ?? schema.mapType) === 'atomic' ? 'leaf' : 'map'
    case 'list':
      return LIST_ATOMS[field?.listType ?? schema.listType ?? 'atomic']
    case 'any':
    case 'int-or-string':
      return isDeduced(schema) && isObject(value) ? 'map' : 'leaf'
    default:
      return 'leaf'
  }
}

/**
 * True if maps in an untyped position are owned entry by entry. For built-in kinds that applies to all untyped fields
 * except RawExtension, including IntOrString, because OpenAPI has no type for them.
 */
export function isDeduced(schema: Schema): boolean {
  if (schema.type === 'int-or-string') return true
  return schema.type === 'any' && (schema.deduced ?? schema.goType !== 'runtime.RawExtension')
}

const UNTYPED: TypeRef = { schema: { type: 'any', goType: 'interface {}', deduced: true } }

/** The fields of every struct, as typed positions. */
const entryTypes = new WeakMap<FieldSchema, TypeRef>()

/** The type of the entry `name` of a map or struct. */
export function entryType({ schema }: TypeRef, name: string): TypeRef {
  if (schema.type === 'map') return placeOf(schema.values)
  const field = schema.type === 'struct' ? schema.fields.get(name) : undefined
  if (field === undefined) return UNTYPED
  let type = entryTypes.get(field)
  if (type === undefined) entryTypes.set(field, (type = { schema: field.schema, field }))
  return type
}

const typeRefs = new WeakMap<Schema, TypeRef>()

function placeOf(schema: Schema): TypeRef {
  let type = typeRefs.get(schema)
  if (type === undefined) typeRefs.set(schema, (type = { schema }))
  return type
}

/** Declared fields belong to their struct; a map key exists by itself, and can be owned. */
export function isDeclared({ schema }: TypeRef, name: string): boolean {
  return schema.type === 'struct' && schema.fields.has(name)
}

export function itemType({ schema }: TypeRef): TypeRef {
  return schema.type === 'list' ? placeOf(schema.items) : UNTYPED
}

/** The reason why a list item has no path element, in upstream's words. */
export class ItemFault extends Error {
  constructor(message: string) {
    super(message)
    this.name = 'ItemFault'
  }
}

function mergeRuleOf({ schema, field }: TypeRef): Pick<FieldSchema, 'listType' | 'mapKeys'> {
  return field?.listType === undefined && schema.type === 'list' ? schema : (field ?? {})
}

const NO_KEYS: readonly string[] = []

/** The path element of an item in a set or keyed list. Throws ItemFault if it has none. */
export function itemElement(type: TypeRef, item: unknown): PathElement {
  const { listType, mapKeys = NO_KEYS } = mergeRuleOf(type)
  if (listType !== 'map') return setElement(item)
  if (item === null) throw new ItemFault('associative list with keys may not have a null element')
  if (!isObject(item)) throw new ItemFault('associative list with keys may not have non-map elements')
  const { schema } = itemType(type)
  const found: ItemKey[] = []
  for (const name of mapKeys) {
    const value = Object.hasOwn(item, name) ? item[name] : undefined
    const known = value ?? (schema.type === 'struct' ? schema.fields.get(name)?.default : undefined)
    if (value === null) found.push([name, null])
    else if (known !== undefined && known !== null) found.push([name, known])
  }
  if (found.length > 0) return keyElement(found)
  const names = goStrings(mapKeys).slice('[]string{'.length, -1).replaceAll(', ', ' ')
  throw new ItemFault(
    `associative list with keys has an element that omits all key fields [${names}] (and doesn't have default values for any key fields)`,
  )
}

function setElement(item: unknown): PathElement {
  if (isObject(item)) throw new ItemFault("associative list without keys has an element that's a map type")
  if (Array.isArray(item)) throw new ItemFault('not supported: associative list with lists as elements')
  if (item === null) throw new ItemFault("associative list without keys has an element that's an explicit null")
  return valueElement(item)
}

/** The type below an element of a given set; undefined if the type has no such position. */
export function typeBelow(type: TypeRef, element: PathElement): TypeRef | undefined {
  const { schema } = type
  if (!element.startsWith('f:')) return schema.type === 'list' ? itemType(type) : undefined
  const name = element.slice(2)
  if (schema.type === 'struct') {
    return schema.fields.has(name) || isOpen(schema) ? entryType(type, name) : undefined
  }
  return schema.type === 'map' || isDeduced(schema) ? entryType(type, name) : undefined
}

/** True for a struct that accepts undeclared fields. OpenAPI treats a struct without fields as such. */
export function isOpen(schema: Schema): boolean {
  return schema.type === 'struct' && (schema.preserveUnknown || schema.fields.size === 0)
}

export type Entries = Readonly<Record<string, unknown>>

function isObject(value: unknown): value is Entries {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

/** The value as a map; undefined if it is none. */
export function asMap(value: unknown): Entries | undefined {
  return isObject(value) ? value : undefined
}

export function asList(value: unknown): readonly unknown[] | undefined {
  return Array.isArray(value) ? value : undefined
}

/** Empty values that only validation distinguishes from absent ones: they are not stored and have no owner. */
export function isUncounted({ field }: TypeRef, value: unknown): boolean {
  return field?.emptyCounts === true && isHollow(value)
}

/** Absent, null, or an empty map or list. */
export function isHollow(value: unknown): boolean {
  if (value === undefined || value === null) return true
  return typeof value === 'object' && (Array.isArray(value) ? value : Object.keys(value)).length === 0
}
