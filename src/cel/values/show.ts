/** Formats CEL values in messages like Go's `%v`. */
import { durationText } from '#lib/go/duration.ts'

import { Double, ListValue, MapValue, OpaqueValue, Optional, TypeValue, Uint, type Value } from '../value.ts'
import { doubleText } from './conversion.ts'
import { Duration, Timestamp, timestampText } from './time.ts'

export function showValue(value: Value): string {
  if (value === null) return 'null'
  if (typeof value !== 'object') return String(value)
  if (value instanceof Double) return doubleText(value)
  if (value instanceof Uint) return String(value.value)
  if (value instanceof Uint8Array) return `[${value.join(' ')}]`
  if (value instanceof Timestamp) return timestampText(value).replace('T', ' ').replace('Z', ' +0000 UTC')
  if (value instanceof Duration) return durationText(value.nanos)
  return showObject(value)
}

function showObject(value: Exclude<Value, null | string | number | bigint | boolean>): string {
  if (value instanceof TypeValue) return value.name
  if (value instanceof Optional)
    return value.value === undefined ? 'optional.none()' : `optional(${showValue(value.value)})`
  if (value instanceof ListValue) {
    return `[${Array.from({ length: value.size }, (_, at) => showValue(value.at(at) as Value)).join(', ')}]`
  }
  if (value instanceof MapValue) {
    return `{${Array.from(value.keys(), (key) => `${showValue(key)}: ${showValue((value.get(key) ?? null) as Value)}`).join(', ')}}`
  }
  return value instanceof OpaqueValue ? String(value) : `{${typeof value}}`
}
