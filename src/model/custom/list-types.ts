/** Checks that the items of sets and keyed lists are unique. */
import { isJsonObject, type JsonObject, type JsonValue } from '#lib/json/value.ts'
import { type FieldError, fieldPath, type FieldPath } from '#meta/validation/field-path.ts'

import { HAS_UNIQUE, type Structural } from './structural.ts'

/** A duplicate is reported only at its second occurrence. */
export function validateListTypes(value: JsonValue, schema: Structural, path: FieldPath = fieldPath('')): FieldError[] {
  if ((schema.has & HAS_UNIQUE) === 0) return []
  if (Array.isArray(value)) return validateList(value, schema, path)
  return isJsonObject(value) ? validateMembers(value, schema, path) : []
}

function validateMembers(object: JsonObject, schema: Structural, path: FieldPath): FieldError[] {
  const { properties, additional } = schema
  return Object.entries(object).flatMap(([name, member]) => {
    const property = properties.get(name)
    if (property !== undefined) return validateListTypes(member, property, path.child(name))
    return typeof additional === 'object' ? validateListTypes(member, additional, path.key(name)) : []
  })
}

function validateList(list: readonly JsonValue[], schema: Structural, path: FieldPath): FieldError[] {
  const { items } = schema
  const errors = validateUnique(list, schema, path)
  if (items === undefined || (items.has & HAS_UNIQUE) === 0) return errors
  return [...errors, ...path.each(list, (path, item) => validateListTypes(item, items, path))]
}

function validateUnique(list: readonly JsonValue[], { listType, mapKeys }: Structural, path: FieldPath): FieldError[] {
  if (listType === 'set') return secondPlaces(list).map((at) => path.index(at).duplicate(list[at]))
  if (listType !== 'map') return []
  const odd = list.findIndex((item) => item !== null && !isJsonObject(item))
  if (odd >= 0) return [path.index(odd).invalid(list[odd], 'must be an object for an array of list-type map')]
  const keys = list.map((item) => keysOf(item as JsonObject | null, mapKeys))
  return secondPlaces(keys).map((at) => path.index(at).duplicate(keys[at]))
}

/** The key fields of an item. */
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

/** Texts are quoted, so they never equal numbers. */
function identity(item: JsonValue): string {
  return typeof item === 'bigint' ? item.toString() : JSON.stringify(item, (_, part: unknown) => plainNumber(part))
}

function plainNumber(part: unknown): unknown {
  return typeof part === 'bigint' ? `${part}n` : part
}
