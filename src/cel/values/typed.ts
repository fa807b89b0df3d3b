/**
 * Presents JSON as CEL values of declared types, such as objects, set lists, times and bytes. A value is wrapped on
 * access; nothing is copied.
 */
import { isDeepStrictEqual } from 'node:util'

import { spendEffort } from '../effort.ts'
import { escapeName } from '../syntax/names.ts'
import type { CelType, ListType, ObjectType } from '../type.ts'
import type { ListValue } from '../value.ts'
import { Double, Failure, MapValue, NO_SUCH_OVERLOAD, type Result, type Value } from '../value.ts'
import { equal } from './equality.ts'
import { bytesOf, durationOf, timestampOf } from './json-text.ts'
import {
  fromJson,
  invalidData,
  isJsonObject,
  keysOf,
  TypedList,
  TypedMap,
  type Adapter,
  type JsonObject,
} from './json.ts'
import { toJson } from './to-json.ts'

/** The value of JSON by a declared type. */
export const fromTyped = (json: unknown, type: CelType): Result => adapterOf(type)(json)

const scalars: Readonly<Record<string, Adapter>> = {
  dyn: fromJson,
  null: fromJson,
  error: fromJson,
  bool: (json) => (typeof json === 'boolean' ? json : nullOr(json, 'bool')),
  string: (json) => (typeof json === 'string' ? json : nullOr(json, 'string')),
  int: intOfJson,
  uint: intOfJson,
  double: (json) => (typeof json === 'number' ? new Double(json) : nullOr(json, 'float')),
  bytes: (json) => (typeof json === 'string' ? bytesOf(json) : nullOr(json, 'string')),
  timestamp: (json) => (typeof json === 'string' ? timestampOf(json) : nullOr(json, 'string')),
  duration: (json) => (typeof json === 'string' ? durationOf(json) : nullOr(json, 'string')),
}

function nullOr(json: unknown, expected: string): Result {
  return json === null ? null : invalidData(expected, json)
}

function intOfJson(json: unknown): Result {
  if (Number.isSafeInteger(json)) return (json as number) + 0
  if (typeof json === 'bigint') return json
  const value = typeof json === 'number' ? fromJson(json) : undefined
  return typeof value === 'bigint' ? value : nullOr(json, 'int')
}

const adapters = new WeakMap<CelType, Adapter>()

/** How values of a type are made; the same function for the same type. */
export function adapterOf(type: CelType): Adapter {
  const known = adapters.get(type)
  if (known !== undefined) return known
  const made = makeAdapter(type)
  adapters.set(type, made)
  return made
}

function makeAdapter(type: CelType): Adapter {
  switch (type.kind) {
    case 'list':
      return listAdapter(type)
    case 'map': {
      // Created on first use, because types may be recursive.
      const adapt: Adapter = (json) => adapterOf(type.value)(json)
      return (json) => (isJsonObject(json) ? new TypedMap(json, adapt) : notObject(json))
    }
    case 'object':
      return (json) => (isJsonObject(json) ? new ObjectView(json, type) : notObject(json))
    case 'wrapper':
      return adapterOf(type.of)
    case 'opaque':
    case 'type':
    case 'parameter':
      return fromJson
    default:
      return scalars[type.kind] ?? fromJson
  }
}

function notObject(json: unknown): Result {
  if (json === null) return null
  return new Failure('invalid data, expected a map for the provided schema with type=object')
}

function listAdapter(type: ListType): Adapter {
  const adapt: Adapter = (json) => adapterOf(type.element)(json)
  return (json) => {
    if (Array.isArray(json)) return makeList(json, type, adapt)
    return json === null ? null : new Failure('invalid data, expected an array for the provided schema with type=array')
  }
}

function makeList(json: readonly unknown[], { semantics }: ListType, adapt: Adapter): ListValue {
  if (semantics === undefined) return new TypedList(json, adapt)
  return semantics.listType === 'set'
    ? new UnorderedTypedList(json, adapt, (element) => element)
    : new UnorderedTypedList(json, adapt, keyBy(semantics.keys))
}

/** One value for each combination of keys. */
function keyBy(keys: readonly string[]): (element: unknown) => unknown {
  if (keys.length === 1) return (element) => (isJsonObject(element) ? element[keys[0] as string] : undefined)
  return (element) => (isJsonObject(element) ? JSON.stringify(keys.map((key) => element[key])) : undefined)
}

/** A set, or a map in the form of a list: elements are known by `identify`, and their order says nothing. */
class UnorderedTypedList extends TypedList {
  readonly #identify: (element: unknown) => unknown
  constructor(json: readonly unknown[], adapt: Adapter, identify: (element: unknown) => unknown) {
    super(json, adapt)
    this.#identify = identify
  }

  override equalsUnordered(other: ListValue): boolean | Failure {
    spendEffort(30 * this.size)
    const mine = new Map(this.json.map((element) => [this.#identify(element), element]))
    for (let at = 0; at < other.size; at++) {
      const value = other.at(at)
      const key = this.#identify(rawOf(value))
      if (!mine.has(key)) return false
      const same = equal(this.adapt(mine.get(key)), value)
      if (same !== true) return same
    }
    return true
  }

  override plusUnordered(other: ListValue): ListValue {
    spendEffort(30 * (this.size + other.size))
    const merged = new Map(this.json.map((element) => [this.#identify(element), element]))
    for (let at = 0; at < other.size; at++) {
      const element = rawOf(other.at(at))
      merged.set(this.#identify(element), element)
    }
    return new UnorderedTypedList([...merged.values()], this.adapt, this.#identify)
  }
}

const rawOf = (value: Result): unknown => (value instanceof Failure ? undefined : toJson(value))

/** An object of declared fields. Null counts as absent, and what is not declared is out of sight. */
export class ObjectView extends MapValue {
  readonly json: JsonObject
  readonly type: ObjectType
  constructor(json: JsonObject, type: ObjectType) {
    super()
    this.json = json
    this.type = type
  }
  get size(): number {
    return keysOf(this.json).length
  }
  get(key: Value): Result | undefined {
    if (typeof key !== 'string') return NO_SUCH_OVERLOAD
    const field = this.type.field(key)
    if (field === undefined || !Object.hasOwn(this.json, field.jsonName)) return undefined
    const json = this.json[field.jsonName]
    return json === null || json === undefined ? undefined : adapterOf(field.type)(json)
  }
  *keys(): Generator<Value> {
    for (const name of keysOf(this.json)) {
      const escaped = escapeName(name)
      if (escaped !== undefined && this.type.field(escaped) !== undefined) yield escaped
    }
  }
  override get isTyped(): boolean {
    return true
  }

  override equalsDeclared(other: MapValue): boolean | Failure {
    spendEffort(60 * this.size)
    for (const name of keysOf(this.json)) {
      const escaped = escapeName(name)
      const isDeclared = escaped !== undefined && this.type.field(escaped) !== undefined
      const same = isDeclared ? sameField(this.get(escaped), other.get(escaped)) : this.#sameUnknown(name, other)
      if (same !== true) return same
    }
    return true
  }

  /** Compares a field that the object has and the schema lacks. */
  #sameUnknown(name: string, other: MapValue): boolean | Failure {
    if (!(other instanceof ObjectView)) return NO_SUCH_OVERLOAD
    return !Object.hasOwn(other.json, name) || isDeepStrictEqual(this.json[name], other.json[name])
  }
}

function sameField(a: Result | undefined, b: Result | undefined): boolean | Failure {
  if (a === undefined || b === undefined) return a === b
  return equal(a, b)
}
