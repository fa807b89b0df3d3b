/** What a conversion rule is, and the few moves that rules are made of. */
import { isJsonObject, type JsonObject, type JsonValue, setMember } from '#lib/json-value.ts'
import type { GroupVersionKind } from '#meta/kind.ts'

/**
 * How one version of a kind becomes the hub, the version it is stored in, and back. Both functions own the object they
 * are handed and may return it changed. What they return need not be canonical, and its kind and apiVersion are set by
 * the caller; fields that both versions have alike are none of their business.
 */
export interface Rule {
  readonly spoke: GroupVersionKind
  readonly hub: GroupVersionKind
  /** Every difference between the two schemas (see `compareShapes`), so that a new field cannot be forgotten. */
  readonly differences: readonly string[]
  readonly toHub: (spoke: JsonObject) => JsonObject
  readonly fromHub: (hub: JsonObject) => JsonObject
  /** For hubs that upstream changes even when no version does: the object itself when there is nothing to do. */
  readonly tidyHub?: (hub: JsonObject) => JsonObject
}

/** The object with members renamed; those not in `names` stay. */
export function rename(object: JsonObject, names: ReadonlyMap<string, string>): JsonObject {
  const output: JsonObject = {}
  for (const [key, value] of Object.entries(object)) setMember(output, names.get(key) ?? key, value)
  return output
}

/** Replaces, in place, every object at `path` by what `change` makes of it. `[]` stands for the items of a list. */
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

/** Takes members out of the object: those named, if they are there. */
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
