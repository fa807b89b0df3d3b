/**
 * Converts a patched map to a typed object, with the errors of upstream's unstructured converter. It is slower than
 * decoding, so it runs only after decoding has failed.
 */
import { decodeValue } from '../codec/decode.ts'
import { CodecError } from '../codec/error.ts'
import type { ListSchema, MapSchema, ScalarSchema, Schema, StructSchema } from '../schema.ts'
import { get, goTypeOf, isMap, type JsonMap, put } from './json-map.ts'

export interface RestoreResult {
  /** Matches the schema, but is not canonical. */
  readonly value: unknown
  /** `unknown field "…"` each, sorted. Map keys are not part of the path. */
  readonly unknown: readonly string[]
}

/** Throws CodecError with code `type`. Does not change `value`. */
export function restore(schema: Schema, value: unknown): RestoreResult {
  const unknown: string[] = []
  return { value: restoreValue({ schema, path: '', unknown }, value), unknown: unknown.sort() }
}

interface RestorePosition<Of extends Schema = Schema> {
  readonly schema: Of
  readonly path: string
  readonly unknown: string[]
}

function restoreValue(position: RestorePosition, value: unknown): unknown {
  if (value === null || value === undefined) return null
  const { schema } = position
  switch (schema.type) {
    case 'struct':
      return restoreStruct({ ...position, schema }, value)
    case 'list':
      return restoreList({ ...position, schema }, value)
    case 'map':
      return restoreMap({ ...position, schema }, value)
    case 'string':
    case 'boolean':
    case 'int32':
    case 'int64':
    case 'float64':
      return restoreScalar(schema, value)
    default:
      return restoreApart(schema, value)
  }
}

/** Types with their own decoder use it, and have no context. */
function restoreApart(schema: Schema, value: unknown): unknown {
  if (schema.type === 'bytes' && typeof value !== 'string' && !Array.isArray(value)) {
    throw wrong(`cannot restore slice from ${kindOf(value)}`)
  }
  return decodeValue(schema, structuredClone(value), 'Ignore', { offences: [] })
}

function restoreStruct({ schema, path, unknown }: RestorePosition<StructSchema>, value: unknown): JsonMap {
  if (!isMap(value)) throw wrong(`cannot restore struct from: ${kindOf(value)}`)
  const result: JsonMap = {}
  for (const [name, field] of schema.fields) {
    const given = get(value, name)
    if (given === undefined) continue
    result[name] = restoreValue({ schema: field.schema, path: below(path, name), unknown }, given)
  }
  for (const name of Object.keys(value)) {
    if (!schema.fields.has(name)) unknown.push(`unknown field "${below(path, name)}"`)
  }
  return result
}

function restoreList({ schema, path, unknown }: RestorePosition<ListSchema>, value: unknown): unknown[] {
  if (!Array.isArray(value)) throw wrong(`cannot restore slice from ${kindOf(value)}`)
  return value.map((item, at) => restoreValue({ schema: schema.items, path: `${path}[${at}]`, unknown }, item))
}

function restoreMap({ schema, path, unknown }: RestorePosition<MapSchema>, value: unknown): JsonMap {
  if (!isMap(value)) throw wrong(`cannot restore map from ${kindOf(value)}`)
  const result: JsonMap = {}
  for (const [key, part] of Object.entries(value)) {
    put(result, key, restoreValue({ schema: schema.values, path, unknown }, part))
  }
  return result
}

function below(path: string, name: string): string {
  return path === '' ? name : `${path}.${name}`
}

function restoreScalar({ type, goType }: ScalarSchema, value: unknown): unknown {
  if (type === 'string' || type === 'boolean') {
    if (typeof value === type) return value
    // Go would convert an integer to text, which upstream prevents.
    if (type === 'string' && kindOf(value) === 'int64') throw wrong(`cannot convert int64 to ${goType}`)
    throw wrong(`unrecognized type: ${type === 'string' ? 'string' : 'bool'}`)
  }
  if (typeof value !== 'number' && typeof value !== 'bigint') throw wrong(`unrecognized type: ${type}`)
  if (type === 'float64') return Number(value)
  if (typeof value === 'number' && !Number.isInteger(value)) throw wrong(`cannot convert float64 to ${goType}`)
  return wrap(value, type === 'int32' ? 32 : 64)
}

/** The integer truncated to a number of bits. A double beyond int64 becomes the smallest value, as on the processor. */
function wrap(value: number | bigint, bits: number): number | bigint {
  const whole = BigInt(value)
  const inRange = whole === BigInt.asIntN(64, whole) ? whole : -(2n ** 63n)
  const wrapped = BigInt.asIntN(bits, inRange)
  const number = Number(wrapped)
  return Number.isSafeInteger(number) ? number : wrapped
}

function wrong(message: string): CodecError {
  return new CodecError('type', message)
}

/** Go's kind of an untyped value. */
function kindOf(value: unknown): string {
  if (Array.isArray(value)) return 'slice'
  return isMap(value) ? 'map' : (goTypeOf(value) ?? '')
}
