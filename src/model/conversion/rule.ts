/** The interface of conversion rules, and functions from which rules are built. */
import { isJsonObject, type JsonObject, type JsonValue, setMember } from '#lib/json/value.ts'
import type { GroupVersionKind } from '#meta/kind.ts'

/**
 * Converts one version of a kind to the hub, the storage version, and back. Both functions own their argument and may
 * return it changed. The result need not be canonical; the caller sets kind and apiVersion, and fields that both
 * versions share stay.
 */
export interface Rule {
  readonly spoke: GroupVersionKind
  readonly hub: GroupVersionKind
  /** All differences between the two schemas (see `compareShapes`), so that a new field cannot be forgotten. */
  readonly differences: readonly string[]
  readonly toHub: (spoke: JsonObject) => JsonObject
  readonly fromHub: (hub: JsonObject) => JsonObject
  /**
   * For hubs that upstream changes even without a version change: returns the same object if there is nothing to do.
   */
  readonly tidyHub?: (hub: JsonObject) => JsonObject
}

/** Renames members of the object; others stay. */
export function rename(object: JsonObject, names: ReadonlyMap<string, string>): JsonObject {
  const output: JsonObject = {}
  for (const [key, value] of Object.entries(object)) setMember(output, names.get(key) ?? key, value)
  return output
}

/** Replaces every object at `path` in place. `[]` stands for the items of a list. */
export function changeAt(object: JsonObject, path: readonly string[], change: (part: JsonObject) => JsonObject): void {
  const [first = '', ...rest] = path
  const items = rest[0] === '[]'
  const member = object[first]
  const next = items ? rest.slice(1) : rest
  const step = (part: JsonValue): JsonValue => {
    if (!isJsonObject(part)) return part
    if (next.length === 0) return change(part)
    changeAt(part, next, change)
    return part
  }
  if (items && Array.isArray(member)) object[first] = member.map(step)
  else if (!items && isJsonObject(member)) object[first] = step(member)
}

/** Removes the named members and returns those that exist. */
export function takeMembers(object: JsonObject, names: readonly string[]): JsonObject {
  const taken: JsonObject = {}
  for (const name of names) {
    const value = object[name]
    if (value === undefined) continue
    taken[name] = value
    delete object[name]
  }
  return taken
}
