/**
 * Map values that the evaluation of a CEL expression creates. `1` and `1u` are distinct keys, but a look-up also finds
 * an equal number of another type.
 */
import { Double, MAX_INT64, MapValue, MIN_INT64, Uint, intOf, type Result, type Value } from '../value.ts'

/** Beyond every int, so that a uint as a key is not taken for the int of the same value. */
const UINT_KEYS = 2n ** 70n

/** The key that represents a value in a JavaScript map: equal for equal keys of one type. */
export function mapKey(value: Value): unknown {
  if (value instanceof Uint) return value.value + UINT_KEYS
  if (value instanceof Double) return doubleKey(value.value)
  return value
}

const doubleBits = new DataView(new ArrayBuffer(8))

function doubleKey(value: number): unknown {
  // Never equal to itself.
  if (Number.isNaN(value)) return {}
  doubleBits.setFloat64(0, value === 0 ? 0 : value)
  return -(doubleBits.getBigUint64(0) + UINT_KEYS)
}

/** The values of other numeric types that a key finds when there is nothing under itself. */
export function* equalNumbers(key: Value): Generator<Value> {
  if (key instanceof Double) {
    if (!Number.isInteger(key.value)) return
    const whole = BigInt(key.value)
    if (whole >= MIN_INT64 && whole <= MAX_INT64) yield intOf(whole)
    if (whole >= 0n && whole <= 2n ** 64n - 1n) yield new Uint(whole)
  } else if (key instanceof Uint) {
    if (key.value <= MAX_INT64) yield intOf(key.value)
  } else if (typeof key === 'number' || typeof key === 'bigint') {
    if (key >= 0) yield new Uint(BigInt(key))
  }
}

export class EntryMap extends MapValue {
  /** By `mapKey`. */
  readonly entries: Map<unknown, readonly [Value, Value]>
  constructor(entries: Map<unknown, readonly [Value, Value]> = new Map()) {
    super()
    this.entries = entries
  }
  get size(): number {
    return this.entries.size
  }
  get(key: Value): Result | undefined {
    const found = this.entries.get(mapKey(key))
    if (found !== undefined || typeof key === 'string' || this.entries.size === 0) return found?.[1]
    for (const other of equalNumbers(key)) {
      const equal = this.entries.get(mapKey(other))
      if (equal !== undefined) return equal[1]
    }
    return undefined
  }
  *keys(): Generator<Value> {
    for (const [key] of this.entries.values()) yield key
  }
  set(key: Value, value: Value): void {
    this.entries.set(mapKey(key), [key, value])
  }
}

/** The result of a macro while it grows; as for lists. */
export class GrowingMap extends EntryMap {}

export function mapOfEntries(entries: Iterable<readonly [Value, Value]>): EntryMap {
  const map = new EntryMap()
  for (const [key, value] of entries) map.set(key, value)
  return map
}
