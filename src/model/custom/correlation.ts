/**
 * Finds the old value of each value in an update of a custom resource: the property of the same name, or the item
 * with the same keys. Ratcheting and transition rules need it.
 */
import { isDeepStrictEqual } from 'node:util'

import { isJsonObject, type JsonObject, type JsonValue } from '#lib/json/value.ts'

import { memberSchema, type Structural } from './structural.ts'

export class Correlation {
  readonly value: JsonValue
  readonly old: JsonValue
  readonly schema: Structural
  #children: Map<string | number, Correlation | undefined> | undefined
  #oldByKey: Map<string, JsonObject> | undefined
  #unchanged: boolean | undefined

  constructor(value: JsonValue, old: JsonValue, schema: Structural) {
    this.value = value
    this.old = old
    this.schema = schema
  }

  /** The correlation of member `name`; undefined if one side lacks it or no schema describes it. */
  key(name: string): Correlation | undefined {
    return this.#child(name, () => {
      const { value, old } = this
      if (!isJsonObject(value) || !isJsonObject(old)) return undefined
      if (!Object.hasOwn(value, name) || !Object.hasOwn(old, name)) return undefined
      const schema = memberSchema(this.schema, name)
      return schema && new Correlation(value[name] as JsonValue, old[name] as JsonValue, schema)
    })
  }

  /** The correlation of the item at `index`: only items of keyed lists have one. */
  index(index: number): Correlation | undefined {
    return this.#child(index, () => {
      const { items } = this.schema
      if (!Array.isArray(this.value) || !Array.isArray(this.old) || items === undefined) return undefined
      const item = this.value[index]
      const old = item === undefined ? undefined : this.#oldItem(item)
      return old === undefined ? undefined : new Correlation(item as JsonValue, old, items)
    })
  }

  get isUnchanged(): boolean {
    return (this.#unchanged ??= this.#compare())
  }

  #child(step: string | number, find: () => Correlation | undefined): Correlation | undefined {
    this.#children ??= new Map()
    if (this.#children.has(step)) return this.#children.get(step)
    const found = find()
    this.#children.set(step, found)
    return found
  }

  #oldItem(item: JsonValue): JsonObject | undefined {
    if (this.schema.listType !== 'map' || this.schema.mapKeys.length === 0) return undefined
    this.#oldByKey ??= byKeys(this.old as JsonValue[], this.schema.mapKeys)
    const key = keyText(item, this.schema.mapKeys)
    return key === undefined ? undefined : this.#oldByKey.get(key)
  }

  #compare(): boolean {
    const { value, old } = this
    if (Array.isArray(value) && Array.isArray(old)) return this.#compareLists(value, old)
    if (isJsonObject(value) && isJsonObject(old)) {
      const names = Object.keys(value)
      return names.length === Object.keys(old).length && names.every((name) => this.key(name)?.isUnchanged === true)
    }
    return value === old
  }

  #compareLists(value: readonly JsonValue[], old: readonly JsonValue[]): boolean {
    if (value.length !== old.length) return false
    // A list whose items cannot be correlated is compared as a whole.
    if (this.schema.listType !== 'map') return sameJson(value, old)
    return value.every((_, index) => this.index(index)?.isUnchanged === true)
  }
}

function byKeys(items: readonly JsonValue[], keys: readonly string[]): Map<string, JsonObject> {
  const found = new Map<string, JsonObject>()
  for (const item of items) {
    const key = keyText(item, keys)
    if (key !== undefined && !found.has(key)) found.set(key, item as JsonObject)
  }
  return found
}

/** The key of an item in a keyed list; undefined if a key is missing or no scalar. */
export function keyText(item: JsonValue, keys: readonly string[]): string | undefined {
  if (!isJsonObject(item)) return undefined
  const parts: string[] = []
  for (const key of keys) {
    const value = Object.hasOwn(item, key) ? item[key] : undefined
    if (value === undefined || value === null || typeof value === 'object') return undefined
    parts.push(typeof value === 'string' ? JSON.stringify(value) : String(value))
  }
  return parts.join('\0')
}

/** Compares two values. Values that nest deeper than the stack count as changed. */
export function sameJson(a: unknown, b: unknown): boolean {
  try {
    return isDeepStrictEqual(a, b)
  } catch (error) {
    if (error instanceof RangeError) return false
    throw error
  }
}
