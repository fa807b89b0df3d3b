/** Prunes unknown fields of custom resources, except below `x-kubernetes-preserve-unknown-fields`. */
import { compareText } from '#lib/go/text.ts'
import { isJsonObject, type JsonObject, type JsonValue } from '#lib/json/value.ts'

import { type Structural, structuralOf } from './structural.ts'

/** Fields that every object has without a schema. */
export const metaFields: ReadonlySet<string> = new Set(['apiVersion', 'kind', 'metadata'])

/**
 * Changes `object` and returns the sorted paths of removed fields: `spec.objs[0].b`. `isRoot`: it is an object with
 * metadata.
 */
export function prune(object: JsonValue, schema: Structural, isRoot = true): string[] {
  const walk: Walk = { unknown: [], path: [] }
  pruneValue(object, schema, isRoot || schema.embedded, walk)
  return walk.unknown.sort(compareText)
}

interface Walk {
  readonly unknown: string[]
  readonly path: (string | number)[]
}

/** For a value without a schema: everything is removed. */
const NOTHING = structuralOf({})

function pruneValue(value: JsonValue, schema: Structural, isObject: boolean, walk: Walk): void {
  if (Array.isArray(value)) pruneItems(value, schema, walk)
  else if (isJsonObject(value)) pruneMembers(value, schema, isObject, walk)
}

function pruneMembers(object: JsonObject, schema: Structural, isObject: boolean, walk: Walk): void {
  const { properties, additional, preserveUnknown } = schema
  const { path } = walk
  const others = typeof additional === 'object' ? additional : NOTHING
  for (const name of Object.keys(object)) {
    if (isObject && metaFields.has(name)) continue
    const known = properties.get(name)
    if (known !== undefined || additional !== undefined) {
      const member = known ?? others
      path.push(name)
      pruneValue(object[name] as JsonValue, member, member.embedded, walk)
      path.pop()
    } else if (!preserveUnknown) {
      walk.unknown.push(pathText([...path, name]))
      delete object[name]
    }
  }
}

function pruneItems(list: JsonValue[], { items, preserveUnknown }: Structural, walk: Walk): void {
  if (items === undefined) {
    // Lists of lists without a schema may nest deeper than the stack; only objects in them are removed.
    if (!preserveUnknown) pruneUntyped(list, walk)
    return
  }
  // Preserving unknown fields extends to items.
  const itemSchema = preserveUnknown && !items.preserveUnknown ? { ...items, preserveUnknown } : items
  for (const [index, item] of list.entries()) {
    walk.path.push(index)
    pruneValue(item, itemSchema, itemSchema.embedded, walk)
    walk.path.pop()
  }
}

/** Empties objects in lists without a schema. */
function pruneUntyped(list: readonly JsonValue[], walk: Walk): void {
  const pending: { readonly list: readonly JsonValue[]; readonly path: string }[] = [
    { list, path: pathText(walk.path) },
  ]
  for (let next = pending.pop(); next !== undefined; next = pending.pop()) {
    for (const [index, item] of next.list.entries()) {
      const path = `${next.path}[${index}]`
      if (Array.isArray(item)) pending.push({ list: item, path })
      else if (isJsonObject(item)) emptyObject(item, path, walk)
    }
  }
}

function emptyObject(object: JsonObject, path: string, walk: Walk): void {
  for (const name of Object.keys(object)) {
    walk.unknown.push(`${path}.${name}`)
    delete object[name]
  }
}

/** `spec.objs[0].b`. */
export function pathText(path: readonly (string | number)[]): string {
  let text = ''
  for (const step of path) {
    if (typeof step === 'number') text += `[${step}]`
    else text = text === '' ? step : `${text}.${step}`
  }
  return text
}
