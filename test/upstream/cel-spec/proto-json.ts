/** Reads and writes values in protobuf's JSON form, in which the cel-go program prints its results. */
import { Double, ListValue, MapValue, TypeValue, Uint, type Value } from '#cel/value.ts'
import { Duration, Timestamp, timestampText } from '#cel/values/time.ts'

/** Undefined for what has no such form: optionals, quantities and the like. */
export function protoJson(value: Value): unknown {
  if (value === null) return { nullValue: null }
  if (typeof value === 'boolean') return { boolValue: value }
  if (typeof value === 'string') return { stringValue: value }
  if (typeof value === 'number' || typeof value === 'bigint') return { int64Value: String(value) }
  if (value instanceof Uint) return { uint64Value: String(value.value) }
  if (value instanceof Double) {
    return { doubleValue: Number.isFinite(value.value) ? value.value : String(value.value) }
  }
  if (value instanceof Uint8Array) return { bytesValue: Buffer.from(value).toString('base64') }
  return structured(value)
}

function structured(value: Value): unknown {
  if (value instanceof ListValue) {
    const values = Array.from({ length: value.size }, (_, at) => protoJson(value.at(at) as Value))
    if (values.includes(undefined)) return undefined
    return { listValue: values.length === 0 ? {} : { values } }
  }
  if (value instanceof MapValue) {
    const entries = Array.from(value.keys(), (key) => ({
      key: protoJson(key),
      value: protoJson(value.get(key) as Value),
    }))
    if (entries.some((entry) => entry.value === undefined)) return undefined
    return { mapValue: entries.length === 0 ? {} : { entries } }
  }
  if (value instanceof TypeValue) return { typeValue: value.name }
  if (value instanceof Timestamp) return anyOf('Timestamp', timestampText(value))
  return value instanceof Duration ? anyOf('Duration', durationText(value.nanos)) : undefined
}

function anyOf(name: string, value: string): object {
  return { objectValue: { '@type': `type.googleapis.com/google.protobuf.${name}`, value } }
}

/** With three, six or nine digits after the point, or none. */
function durationText(nanos: bigint): string {
  const whole = (nanos < 0n ? -nanos : nanos).toString().padStart(10, '0')
  const fraction = whole.slice(-9).replace(/(000){1,3}$/, '')
  return `${nanos < 0n ? '-' : ''}${whole.slice(0, -9)}${fraction === '' ? '' : `.${fraction}`}s`
}

/** Comparable: keys in order, and the entries of maps too. */
export function canonical(value: unknown): string {
  return JSON.stringify(value, (name, inner: unknown) => {
    if (name === 'entries') return (inner as unknown[]).toSorted((a, b) => (canonical(a) < canonical(b) ? -1 : 1))
    if (inner === null || typeof inner !== 'object' || Array.isArray(inner)) return inner
    return Object.fromEntries(Object.entries(inner).sort(([a], [b]) => (a < b ? -1 : 1)))
  })
}
