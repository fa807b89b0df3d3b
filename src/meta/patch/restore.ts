/**
 * From a map to a typed object as upstream's unstructured converter goes, which reads what strategic merge patches make:
 * field by field in the order of the Go type, the first value that does not fit ends it, in words of its own. Numbers
 * are converted as Go converts them, so that those out of range wrap. Slower than decoding, and only needed to tell what
 * decoding found wrong.
 */
import { decodeValue } from '../codec/decode.ts'
import { CodecError } from '../codec/error.ts'
import type { ListSchema, MapSchema, ScalarSchema, Schema, StructSchema } from '../schema.ts'
import { get, goTypeOf, isMap, type JsonMap, put } from './json-map.ts'

export interface Restored {
  /** Fits the schema, but is not in canonical form. */
  readonly value: unknown
  /** `unknown field "…"` each, sorted. Keys of maps are not part of the path. */
  readonly unknown: readonly string[]
}

/** Throws CodecError with code `type`. `value` is left alone. */
export function restore(schema: Schema, value: unknown): Restored {
  const unknown: string[] = []
  return { value: restoreValue({ schema, path: '', unknown }, value), unknown: unknown.sort() }
}

interface Place<Of extends Schema = Schema> {
  readonly schema: Of
  readonly path: string
  readonly unknown: string[]
}

function restoreValue(place: Place, value: unknown): unknown {
  if (value === null || value === undefined) return null
  const { schema } = place
  switch (schema.type) {
    case 'struct':
      return restoreStruct({ ...place, schema }, value)
    case 'list':
      return restoreList({ ...place, schema }, value)
    case 'map':
      return restoreMap({ ...place, schema }, value)
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

/** Types with a decoder of their own use it, and know nothing of what is around them. */
function restoreApart(schema: Schema, value: unknown): unknown {
  if (schema.type === 'bytes' && typeof value !== 'string' && !Array.isArray(value)) {
    throw wrong(`cannot restore slice from ${kindOf(value)}`)
  }
  return decodeValue(schema, structuredClone(value), 'Ignore', { offences: [] })
}

function restoreStruct({ schema, path, unknown }: Place<StructSchema>, value: unknown): JsonMap {
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

function restoreList({ schema, path, unknown }: Place<ListSchema>, value: unknown): unknown[] {
  if (!Array.isArray(value)) throw wrong(`cannot restore slice from ${kindOf(value)}`)
  return value.map((item, at) => restoreValue({ schema: schema.items, path: `${path}[${at}]`, unknown }, item))
}

function restoreMap({ schema, path, unknown }: Place<MapSchema>, value: unknown): JsonMap {
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
    // Go would make text of an integer, and is kept from it.
    if (type === 'string' && kindOf(value) === 'int64') throw wrong(`cannot convert int64 to ${goType}`)
    throw wrong(`unrecognized type: ${type === 'string' ? 'string' : 'bool'}`)
  }
  if (typeof value !== 'number' && typeof value !== 'bigint') throw wrong(`unrecognized type: ${type}`)
  if (type === 'float64') return Number(value)
  if (typeof value === 'number' && !Number.isInteger(value)) throw wrong(`cannot convert float64 to ${goType}`)
  return wrap(value, type === 'int32' ? 32 : 64)
}

/** The integer in so many bits. A double beyond int64 has none: the processor answers with the smallest. */
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
