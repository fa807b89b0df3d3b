/**
 * Presents JSON without a schema as CEL values, without copying. An exact whole number is an int, every other number a
 * double.
 */
import { noted, spendEffort } from '../effort.ts'
import {
  Double,
  Failure,
  ListValue,
  MAX_INT64,
  MIN_INT64,
  MapValue,
  NO_SUCH_OVERLOAD,
  type Result,
  type Value,
} from '../value.ts'

export type JsonObject = Readonly<Record<string, unknown>>

/** The value of anything JSON can hold; bigints are ints. */
export function fromJson(json: unknown): Value {
  switch (typeof json) {
    case 'string':
    case 'boolean':
    case 'bigint':
      return json
    case 'number':
      return numberValue(json)
    case 'object':
      if (json === null) return null
      return Array.isArray(json) ? new JsonList(json) : new JsonMap(json as JsonObject)
    default:
      return null
  }
}

function numberValue(number: number): Value {
  if (Number.isSafeInteger(number)) return number + 0
  if (!Number.isInteger(number)) return new Double(number)
  const whole = BigInt(number)
  return whole > MAX_INT64 || whole < MIN_INT64 ? new Double(number) : whole
}

/** Listing the keys of a large object takes time that neither its size nor a look at the first of them costs. */
export function keysOf(json: JsonObject): readonly string[] {
  return noted(json, () => {
    const keys = Object.keys(json)
    if (keys.length > MANY) spendEffort(KEY_EFFORT * keys.length)
    return keys
  })
}

const MANY = 64
const KEY_EFFORT = 20

export class JsonMap extends MapValue {
  readonly json: JsonObject
  constructor(json: JsonObject) {
    super()
    this.json = json
  }
  get size(): number {
    return keysOf(this.json).length
  }
  get(key: Value): Result | undefined {
    if (typeof key !== 'string' || !Object.hasOwn(this.json, key)) return undefined
    const value = this.json[key]
    return value === undefined ? undefined : fromJson(value)
  }
  keys(): Iterable<Value> {
    return keysOf(this.json)
  }
}

export class JsonList extends ListValue {
  readonly json: readonly unknown[]
  constructor(json: readonly unknown[]) {
    super()
    this.json = json
  }
  get size(): number {
    return this.json.length
  }
  at(index: number): Result {
    return fromJson(this.json[index])
  }
}

/** Makes the value of a JSON value by its declared type. */
export type Adapter = (json: unknown) => Result

export class TypedMap extends MapValue {
  readonly json: JsonObject
  readonly adapt: Adapter
  constructor(json: JsonObject, adapt: Adapter) {
    super()
    this.json = json
    this.adapt = adapt
  }
  override get isTyped(): boolean {
    return true
  }
  get size(): number {
    return keysOf(this.json).length
  }
  get(key: Value): Result | undefined {
    if (typeof key !== 'string') return NO_SUCH_OVERLOAD
    return Object.hasOwn(this.json, key) ? this.adapt(this.json[key]) : undefined
  }
  keys(): Iterable<Value> {
    return keysOf(this.json)
  }
}

export class TypedList extends ListValue {
  readonly json: readonly unknown[]
  readonly adapt: Adapter
  constructor(json: readonly unknown[], adapt: Adapter) {
    super()
    this.json = json
    this.adapt = adapt
  }
  override get isTyped(): boolean {
    return true
  }
  get size(): number {
    return this.json.length
  }
  at(index: number): Result {
    return this.adapt(this.json[index])
  }
}

export const isJsonObject = (json: unknown): json is JsonObject =>
  typeof json === 'object' && json !== null && !Array.isArray(json)

/** Something is not what its schema says. */
export const invalidData = (expected: string, json: unknown): Failure =>
  new Failure(`invalid data, expected ${expected}, got ${goTypeOfJson(json)}`)

function goTypeOfJson(json: unknown): string {
  switch (typeof json) {
    case 'number':
      return Number.isInteger(json) ? 'int64' : 'float64'
    case 'boolean':
      return 'bool'
    case 'object':
      return Array.isArray(json) ? '[]interface {}' : 'map[string]interface {}'
    default:
      return typeof json
  }
}
