/** Converts CEL values to JSON, for patches, apply configurations and other results. */
import { spendEffort } from '../effort.ts'
import {
  CelError,
  Double,
  Failure,
  ListValue,
  MapValue,
  OpaqueValue,
  Optional,
  TypeValue,
  Uint,
  typeNameOf,
  type Value,
} from '../value.ts'
import { JsonList, JsonMap, TypedList, TypedMap } from './json.ts'
import { showValue } from './show.ts'
import { Duration, Timestamp, durationSecondsText, timestampText } from './time.ts'

/** Throws CelError where a value has no form in JSON. Views give back the JSON they look at; who changes it copies it. */
export function toJson(value: Value): unknown {
  if (value === null || typeof value !== 'object') return value
  if (
    value instanceof JsonMap ||
    value instanceof JsonList ||
    value instanceof TypedMap ||
    value instanceof TypedList
  ) {
    return value.json
  }
  if (value instanceof Double) return Number.isFinite(value.value) ? value.value : String(value.value)
  if (value instanceof Uint) return Number.isSafeInteger(Number(value.value)) ? Number(value.value) : value.value
  if (value instanceof ListValue) return listJson(value)
  if (value instanceof MapValue) return 'json' in value ? value.json : mapJson(value)
  return otherJson(value)
}

function otherJson(value: Exclude<Value, null | boolean | string | number | bigint>): unknown {
  if (value instanceof Uint8Array) return Buffer.from(value).toString('base64')
  if (value instanceof Timestamp) return timestampText(value)
  if (value instanceof Duration) return durationSecondsText(value)
  if (value instanceof Optional && value.value !== undefined) return toJson(value.value)
  if (value instanceof OpaqueValue || value instanceof TypeValue) return showValue(value)
  throw new CelError(`unsupported type conversion from '${typeNameOf(value)}' to JSON`)
}

function listJson(list: ListValue): unknown[] {
  spendEffort(10 * list.size)
  return Array.from({ length: list.size }, (_, at) => {
    const element = list.at(at)
    if (element instanceof Failure) throw new CelError(element.message)
    return toJson(element)
  })
}

function mapJson(map: MapValue): Record<string, unknown> {
  spendEffort(60 * map.size)
  const json: Record<string, unknown> = Object.create(null) as Record<string, unknown>
  for (const key of map.keys()) {
    const value = map.get(key)
    if (value instanceof Failure) throw new CelError(value.message)
    json[typeof key === 'string' ? key : showValue(key)] = toJson(value ?? null)
  }
  return { ...json }
}
