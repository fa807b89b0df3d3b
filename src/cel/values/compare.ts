/** Implements `<`, `<=`, `>` and `>=` on CEL values. */
import { compareText } from '#lib/go/text.ts'

import { Double, Failure, NO_SUCH_OVERLOAD, Uint, isInt, type Result, type Value } from '../value.ts'
import { Duration, Timestamp } from './time.ts'

const NAN = new Failure('NaN values cannot be ordered')

/** Less than, equal to or greater than 0. */
export function compare(a: Value, b: Value): number | Failure {
  if (typeof a === 'number' && typeof b === 'number') return a - b
  if (typeof a === 'string') return typeof b === 'string' ? compareText(a, b) : NO_SUCH_OVERLOAD
  if (isInt(a) || a instanceof Double || a instanceof Uint) return compareNumbers(a, b)
  return compareOthers(a, b)
}

function compareOthers(a: Value, b: Value): number | Failure {
  if (typeof a === 'boolean' && typeof b === 'boolean') return Number(a) - Number(b)
  if (a instanceof Uint8Array && b instanceof Uint8Array) return Buffer.compare(a, b)
  if (a instanceof Timestamp && b instanceof Timestamp) return a.seconds - b.seconds || a.nanos - b.nanos
  if (a instanceof Duration && b instanceof Duration) return order(a.nanos, b.nanos)
  return NO_SUCH_OVERLOAD
}

/** Whether values of this type can be ordered at all. */
export function isComparable(value: Value): boolean {
  if (typeof value !== 'object') return true
  return (
    value instanceof Double ||
    value instanceof Uint ||
    value instanceof Uint8Array ||
    value instanceof Timestamp ||
    value instanceof Duration
  )
}

function order(a: number | bigint, b: number | bigint): number {
  return a < b ? -1 : a > b ? 1 : 0
}

function compareNumbers(a: number | bigint | Double | Uint, b: Value): number | Failure {
  if (a instanceof Double && Number.isNaN(a.value)) return NAN
  if (!isInt(b) && !(b instanceof Double) && !(b instanceof Uint)) return NO_SUCH_OVERLOAD
  if (b instanceof Double && Number.isNaN(b.value)) return NAN
  if (a instanceof Double) return orderDouble(a.value, b)
  if (b instanceof Double) return -orderDouble(b.value, a)
  return order(plain(a), plain(b))
}

const plain = (value: number | bigint | Double | Uint): number | bigint =>
  value instanceof Uint || value instanceof Double ? value.value : value

/** The other number is rounded to a double first, as upstream does. */
function orderDouble(a: number, b: number | bigint | Double | Uint): number {
  return order(a, Number(plain(b)))
}

/**
 * Returns the error of an operator for a type that does not support it. As in upstream, the error names the operator,
 * except for types with methods: strings, timestamps and durations.
 */
export function absence(operator: string): (value: Value) => Failure {
  const absent = new Failure(`no such overload: ${operator}`)
  return (value) => {
    const hasMethods = typeof value === 'string' || value instanceof Timestamp || value instanceof Duration
    return hasMethods ? NO_SUCH_OVERLOAD : absent
  }
}

/** The four operators, from one comparison. */
export function ordering(name: string, holds: (order: number) => boolean): (a: Value, b: Value) => Result {
  const absent = absence(name)
  return (a, b) => {
    if (!isComparable(a)) return absent(a)
    const result = compare(a, b)
    return result instanceof Failure ? result : holds(result)
  }
}
