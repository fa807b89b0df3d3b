/**
 * Applies JSON Merge Patches (RFC 7386) as evanphx/json-patch v4 does, which Kubernetes uses: nulls are also dropped
 * from new objects inside of arrays. Arguments stay unchanged; results may share parts with them.
 */
import { jsonEqual } from './patch.ts'
import { isJsonObject, JsonError, type JsonObject, type JsonValue, setMember } from './value.ts'

/** Deeper values are refused: the machine's stack ends somewhere. */
const MAX_DEPTH = 2_000

/** Merges the patch's members into the document and removes those that the patch has as null. */
export function applyMergePatch(document: JsonValue, patch: JsonValue): JsonValue {
  return merge(document, patch, 0)
}

function merge(current: JsonValue, patch: JsonValue, depth: number): JsonValue {
  if (!isJsonObject(current)) return withoutNulls(patch, depth)
  if (!isJsonObject(patch)) return patch
  checkDepth(depth)
  const merged: JsonObject = { ...current }
  for (const [key, value] of Object.entries(patch)) {
    if (value === null) delete merged[key]
    else setMember(merged, key, merge(ownOrNull(merged, key), value, depth + 1))
  }
  return merged
}

function ownOrNull(object: JsonObject, key: string): JsonValue {
  return Object.hasOwn(object, key) ? (object[key] ?? null) : null
}

/** Objects lose the members that are null; arrays keep their elements. */
function withoutNulls(value: JsonValue, depth: number): JsonValue {
  checkDepth(depth)
  if (Array.isArray(value)) return value.map((item) => withoutNulls(item, depth + 1))
  if (!isJsonObject(value)) return value
  const kept: JsonObject = {}
  for (const [key, member] of Object.entries(value)) {
    if (member !== null) setMember(kept, key, withoutNulls(member, depth + 1))
  }
  return kept
}

/**
 * The patch that makes `modified` of `original`. Members that are null in `modified` cannot be expressed: to a merge
 * patch they are the same as missing ones.
 */
export function createMergePatch(original: JsonObject, modified: JsonObject): JsonObject {
  return difference(original, modified, 0)
}

function difference(original: JsonObject, modified: JsonObject, depth: number): JsonObject {
  checkDepth(depth)
  const patch: JsonObject = {}
  for (const [key, value] of Object.entries(modified)) {
    const before = Object.hasOwn(original, key) ? original[key] : undefined
    if (isJsonObject(before) && isJsonObject(value)) {
      const inner = difference(before, value, depth + 1)
      if (Object.keys(inner).length > 0) setMember(patch, key, inner)
    } else if (before === undefined || !jsonEqual(before, value)) {
      setMember(patch, key, value)
    }
  }
  for (const key of Object.keys(original)) {
    if (!Object.hasOwn(modified, key)) setMember(patch, key, null)
  }
  return patch
}

function checkDepth(depth: number): void {
  if (depth > MAX_DEPTH) throw new JsonError('depth', 'Value nests too deep for a merge patch')
}
