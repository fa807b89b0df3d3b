/**
 * What a schema is to server-side apply: a leaf that is owned whole, a map whose entries are owned one by one, a set of
 * values, or a list keyed by some of its items' fields. Everything else here asks this and nothing of the schema.
 */
import { goStrings } from '#lib/go-text.ts'

import type { FieldSchema, ListType, Schema } from '../schema.ts'
import { type ItemKey, keyElement, type PathElement, valueElement } from './path-element.ts'

/** A place in an object: its schema, and the field it is in, which may say how it merges. */
export interface Typed {
  readonly schema: Schema
  readonly field?: FieldSchema | undefined
}

export type Atom = 'leaf' | 'map' | 'set' | 'keyed'

const LIST_ATOMS: Readonly<Record<ListType, Atom>> = { atomic: 'leaf', set: 'set', map: 'keyed' }

/** `value` decides only where the schema leaves it open: untyped parts. */
export function atomOf({ schema, field }: Typed, value: unknown): Atom {
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
 * True when maps in an untyped place are owned entry by entry. Of the built-in kinds' untyped fields that is every one
 * but RawExtension: OpenAPI says nothing of the others' types, IntOrString included.
 */
export function isDeduced(schema: Schema): boolean {
  if (schema.type === 'int-or-string') return true
  return schema.type === 'any' && (schema.deduced ?? schema.goType !== 'runtime.RawExtension')
}

const UNTYPED: Typed = { schema: { type: 'any', goType: 'interface {}', deduced: true } }

/** The fields of every struct, as places. */
const entryTypes = new WeakMap<FieldSchema, Typed>()

/** The type of the entry `name` of a map or struct. */
export function entryType({ schema }: Typed, name: string): Typed {
  if (schema.type === 'map') return placeOf(schema.values)
  const field = schema.type === 'struct' ? schema.fields.get(name) : undefined
  if (field === undefined) return UNTYPED
  let type = entryTypes.get(field)
  if (type === undefined) entryTypes.set(field, (type = { schema: field.schema, field }))
  return type
}

const places = new WeakMap<Schema, Typed>()

function placeOf(schema: Schema): Typed {
  let type = places.get(schema)
  if (type === undefined) places.set(schema, (type = { schema }))
  return type
}

/** Declared fields are reached through their struct; a key of a map is there by itself, and so can be owned. */
export function isDeclared({ schema }: Typed, name: string): boolean {
  return schema.type === 'struct' && schema.fields.has(name)
}

export function itemType({ schema }: Typed): Typed {
  return schema.type === 'list' ? placeOf(schema.items) : UNTYPED
}

/** Why a list item has no path element, in the words of upstream. */
export class ItemFault extends Error {
  constructor(message: string) {
    super(message)
    this.name = 'ItemFault'
  }
}

function mergeRuleOf({ schema, field }: Typed): Pick<FieldSchema, 'listType' | 'mapKeys'> {
  return field?.listType === undefined && schema.type === 'list' ? schema : (field ?? {})
}

/** The path element of an item of a set or keyed list. Throws ItemFault when it has none. */
export function itemElement(type: Typed, item: unknown): PathElement {
  const { listType, mapKeys = [] } = mergeRuleOf(type)
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

/** The type below an element of a set that somebody made; undefined when the type has no such place. */
export function typeBelow(type: Typed, element: PathElement): Typed | undefined {
  const { schema } = type
  if (!element.startsWith('f:')) return schema.type === 'list' ? itemType(type) : undefined
  const name = element.slice(2)
  if (schema.type === 'struct') {
    return schema.fields.has(name) || isOpen(schema) ? entryType(type, name) : undefined
  }
  return schema.type === 'map' || isDeduced(schema) ? entryType(type, name) : undefined
}

/** A struct that takes fields it does not declare. To OpenAPI one without any fields is such. */
export function isOpen(schema: Schema): boolean {
  return schema.type === 'struct' && (schema.preserveUnknown || schema.fields.size === 0)
}

export type Entries = Readonly<Record<string, unknown>>

function isObject(value: unknown): value is Entries {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

/** The value as a map; undefined when it is not one. */
export function asMap(value: unknown): Entries | undefined {
  return isObject(value) ? value : undefined
}

export function asList(value: unknown): readonly unknown[] | undefined {
  return Array.isArray(value) ? value : undefined
}

/** What was sent empty where that counts to rules only: it will not be stored, and nobody owns it. */
export function isUncounted({ field }: Typed, value: unknown): boolean {
  return field?.emptyCounts === true && isHollow(value)
}

/** Nothing, null, or a map or list with nothing in it. */
export function isHollow(value: unknown): boolean {
  if (value === undefined || value === null) return true
  return typeof value === 'object' && (Array.isArray(value) ? value : Object.keys(value)).length === 0
}
