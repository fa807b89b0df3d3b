/**
 * Sets defaults of custom resources on write and on read. An absent property gets its default, and so does a null that
 * the schema does not allow.
 */
import { isJsonObject, type JsonObject, type JsonValue, setMember } from '#lib/json/value.ts'
import { deepCopy } from '#meta/object.ts'

import { HAS_DEFAULTS, memberSchema, type Structural } from './structural.ts'

/** Changes `value` and appends keys; the caller sorts them if needed. Returns true if it added any. */
export function applyDefaults(value: JsonValue, schema: Structural): boolean {
  if (Array.isArray(value)) return schema.items !== undefined && defaultItems(value, schema.items)
  return isJsonObject(value) && defaultMembers(value, schema)
}

function defaultItems(list: JsonValue[], items: Structural): boolean {
  let added = false
  for (const [index, item] of list.entries()) {
    if (item === null && !items.nullable && items.default !== undefined) list[index] = deepCopy(items.default)
    if (applyDefaults(list[index] as JsonValue, items)) added = true
  }
  return added
}

function defaultMembers(object: JsonObject, schema: Structural): boolean {
  let added = false
  for (const name of Object.keys(object)) {
    const member = memberSchema(schema, name)
    if (member === undefined) continue
    const value = object[name] as JsonValue
    if (value !== null) {
      if (applyDefaults(value, member)) added = true
    } else if (!member.nullable && member.default !== undefined) {
      setMember(object, name, defaultOf(member))
    }
  }
  if ((schema.has & HAS_DEFAULTS) === 0) return added
  for (const [name, property] of schema.properties) {
    if (property.default === undefined || Object.hasOwn(object, name)) continue
    setMember(object, name, defaultOf(property))
    added = true
  }
  return added
}

/** Removes nulls that the schema neither allows nor has a default for, except in lists. Changes `value`. */
export function dropNulls(value: JsonValue, schema: Structural): void {
  if (Array.isArray(value)) {
    if (schema.items !== undefined) for (const item of value) dropNulls(item, schema.items)
    return
  }
  if (!isJsonObject(value)) return
  for (const name of Object.keys(value)) {
    const member = memberSchema(schema, name)
    if (member === undefined) continue
    if (value[name] !== null) dropNulls(value[name] as JsonValue, member)
    else if (!member.nullable && member.default === undefined) delete value[name]
  }
}

/** A default may itself lack properties with defaults. */
function defaultOf(schema: Structural): JsonValue {
  const value = deepCopy(schema.default as JsonValue)
  applyDefaults(value, schema)
  return value
}
