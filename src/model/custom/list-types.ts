/** Items of sets, and of lists keyed by some of their fields, must differ. */
import { isJsonObject, type JsonObject, type JsonValue } from '#lib/json-value.ts'
import { child, duplicate, type FieldError, index, invalid, key } from '#meta/validation/field-error.ts'

import { HAS_UNIQUE, type Structural } from './structural.ts'

/** A value that is there more than once is complained about at its second place only. */
export function validateListTypes(value: JsonValue, schema: Structural, path = ''): FieldError[] {
  if ((schema.has & HAS_UNIQUE) === 0) return []
  if (Array.isArray(value)) return validateList(value, schema, path)
  return isJsonObject(value) ? validateMembers(value, schema, path) : []
}

function validateMembers(object: JsonObject, schema: Structural, path: string): FieldError[] {
  const { properties, additional } = schema
  return Object.entries(object).flatMap(([name, member]) => {
    const property = properties.get(name)
    if (property !== undefined) return validateListTypes(member, property, child(path, name))
    return typeof additional === 'object' ? validateListTypes(member, additional, key(path, name)) : []
  })
}

function validateList(list: readonly JsonValue[], schema: Structural, path: string): FieldError[] {
  const { items } = schema
  const errors = validateUnique(list, schema, path)
  if (items === undefined || (items.has & HAS_UNIQUE) === 0) return errors
  return [...errors, ...list.flatMap((item, at) => validateListTypes(item, items, index(path, at)))]
}

function validateUnique(list: readonly JsonValue[], { listType, mapKeys }: Structural, path: string): FieldError[] {
  if (listType === 'set') return secondPlaces(list).map((at) => duplicate(index(path, at), list[at]))
  if (listType !== 'map') return []
  const odd = list.findIndex((item) => item !== null && !isJsonObject(item))
  if (odd >= 0) return [invalid(index(path, odd), list[odd], 'must be an object for an array of list-type map')]
  const keys = list.map((item) => keysOf(item as JsonObject | null, mapKeys))
  return secondPlaces(keys).map((at) => duplicate(index(path, at), keys[at]))
}

/** The part of an item that names it. */
function keysOf(item: JsonObject | null, mapKeys: readonly string[]): JsonObject {
  const given = mapKeys.filter((name) => item !== null && Object.hasOwn(item, name)).sort()
  return Object.fromEntries(given.map((name) => [name, item?.[name] as JsonValue]))
}

function secondPlaces(list: readonly JsonValue[]): number[] {
  const seen = new Map<string, number>()
  return list.flatMap((item, at) => {
    const text = identity(item)
    const times = seen.get(text) ?? 0
    seen.set(text, times + 1)
    return times === 1 ? [at] : []
  })
}

/** Texts and numbers never meet: those have quotes. */
function identity(item: JsonValue): string {
  return typeof item === 'bigint' ? item.toString() : JSON.stringify(item, (_, part: unknown) => plainNumber(part))
}

function plainNumber(part: unknown): unknown {
  return typeof part === 'bigint' ? `${part}n` : part
}
