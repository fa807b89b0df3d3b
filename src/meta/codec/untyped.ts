/**
 * Converts values without a schema, such as custom resources, to the form of Go's `interface {}`: keys sorted, integers
 * as int64, other numbers as doubles.
 */
import { compareText, sortTexts } from '#lib/go/text.ts'
import { isJsonObject, JsonNumber, type JsonObject, type JsonValue, setMember } from '#lib/json/value.ts'

import { CodecError } from './error.ts'

/** Takes over `value`, like `decodeValue`. Throws CodecError for a number beyond all doubles. */
export function normalizeUntyped(value: unknown): unknown {
  // An explicit stack, because untyped values may nest deeper than the machine's.
  const pending: (JsonValue[] | JsonObject)[] = []
  const root = normalizeOne(value as JsonValue, pending)
  for (let next = pending.pop(); next !== undefined; next = pending.pop()) {
    if (Array.isArray(next)) normalizeItems(next, pending)
    else normalizeMembers(next, pending)
  }
  return root
}

function normalizeItems(list: JsonValue[], pending: (JsonValue[] | JsonObject)[]): void {
  for (const [index, item] of list.entries()) list[index] = normalizeOne(item, pending)
}

function normalizeMembers(object: JsonObject, pending: (JsonValue[] | JsonObject)[]): void {
  for (const [key, value] of Object.entries(object)) {
    const result = normalizeOne(value, pending)
    if (result !== value) setMember(object, key, result)
  }
}

/** The value itself with sorted keys; its contents go to `pending`. */
function normalizeOne(value: JsonValue, pending: (JsonValue[] | JsonObject)[]): JsonValue {
  if (typeof value !== 'object' || value === null) return value
  if (value instanceof JsonNumber) return toDouble(value)
  const result = isJsonObject(value) ? sortMembers(value) : value
  pending.push(result)
  return result
}

/** The object with keys in Go's order: the same object if they are, or a copy. */
export function sortMembers(object: JsonObject): JsonObject {
  const keys = Object.keys(object)
  if (isSorted(keys)) return object
  const output: JsonObject = {}
  // Index-like keys always come first; the JSON encoder handles them.
  for (const key of sortTexts(keys)) setMember(output, key, object[key] as JsonValue)
  return output
}

function isSorted(keys: readonly string[]): boolean {
  for (let at = 1; at < keys.length; at++) {
    if (compareText(keys[at - 1] as string, keys[at] as string) > 0) return false
  }
  return true
}

function toDouble({ text }: JsonNumber): number {
  const number = Number(text)
  if (Number.isFinite(number)) return number
  throw new CodecError('type', `json: cannot unmarshal number ${text} into Go value of type float64`)
}
