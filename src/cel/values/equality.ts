/**
 * Implements `==` on CEL values. Numbers of different types are equal by value, and lists and maps by their elements;
 * other values of different types are never equal.
 */
import { spendEffort } from '../effort.ts'
import {
  Double,
  Failure,
  ListValue,
  MapValue,
  NO_SUCH_OVERLOAD,
  OpaqueValue,
  Optional,
  TypeValue,
  Uint,
  isInt,
  type Result,
  type Value,
} from '../value.ts'
import { Duration, Timestamp } from './time.ts'

/** Whether they are equal; a failure where a value of a library meets one of another type, or an element has failed. */
export function equal(a: Result, b: Result): boolean | Failure {
  if (typeof a !== 'object' && a === b) return true
  if (a instanceof Failure) return a
  if (b instanceof Failure) return b
  if (typeof a === 'string' || typeof a === 'boolean') return false
  return a === null || b === null ? a === b : equalByType(a, b)
}

function equalByType(a: Exclude<Value, null | string | boolean>, b: Value): boolean | Failure {
  if (isInt(a) || a instanceof Double || a instanceof Uint) return equalNumbers(a, b)
  if (a instanceof ListValue) return b instanceof ListValue ? equalLists(a, b) : mismatch(a)
  if (a instanceof MapValue) return b instanceof MapValue ? equalMaps(a, b) : mismatch(a)
  return equalOthers(a, b)
}

/** Typed views of JSON are strict about it; lists and maps of the evaluator are merely different. */
function mismatch(a: ListValue | MapValue): boolean | Failure {
  return a.isTyped ? NO_SUCH_OVERLOAD : false
}

function equalOthers(a: Value & object, b: Value): boolean | Failure {
  if (a instanceof Uint8Array) return b instanceof Uint8Array && Buffer.compare(a, b) === 0
  if (a instanceof Timestamp) return b instanceof Timestamp && a.seconds === b.seconds && a.nanos === b.nanos
  if (a instanceof Duration) return b instanceof Duration && a.nanos === b.nanos
  if (a instanceof TypeValue) return b instanceof TypeValue && a.name === b.name
  if (a instanceof Optional) return b instanceof Optional && equalOptionals(a, b)
  if (!(a instanceof OpaqueValue)) return false
  return b instanceof OpaqueValue && a.typeName === b.typeName ? a.equals(b) : NO_SUCH_OVERLOAD
}

function equalOptionals(a: Optional, b: Optional): boolean | Failure {
  if (a.value === undefined || b.value === undefined) return a.value === b.value
  return equal(a.value, b.value)
}

function equalNumbers(a: number | bigint | Double | Uint, b: Result): boolean {
  if (isInt(a) && isInt(b)) return a === b
  if (a instanceof Uint && b instanceof Uint) return a.value === b.value
  if (a instanceof Double) return equalDouble(a.value, b)
  if (b instanceof Double) return equalDouble(b.value, a)
  if (a instanceof Uint) return isInt(b) && BigInt(b) === a.value
  return b instanceof Uint && BigInt(a) === b.value
}

/** The other number is rounded to a double first, as upstream does. */
function equalDouble(a: number, b: Result): boolean {
  if (b instanceof Double) return a === b.value
  if (b instanceof Uint) return a === Number(b.value)
  return isInt(b) && a === Number(b)
}

function equalLists(a: ListValue, b: ListValue): boolean | Failure {
  if (a.size !== b.size) return false
  const unordered = a.equalsUnordered(b)
  if (unordered !== undefined) return unordered
  const isStrict = a.isTyped
  spendEffort(4 * a.size)
  for (let at = 0; at < a.size; at++) {
    const same = equal(a.at(at), b.at(at))
    // Lists of the evaluator take elements that cannot be compared for equal.
    if (same === false || (isStrict && same !== true)) return same
  }
  return true
}

function equalMaps(a: MapValue, b: MapValue): boolean | Failure {
  if (a.size !== b.size) return false
  const declared = a.equalsDeclared(b)
  if (declared !== undefined) return declared
  const isStrict = a.isTyped
  spendEffort(60 * a.size)
  for (const key of a.keys()) {
    const other = b.get(key)
    if (other === undefined) return false
    const same = equal(a.get(key) as Result, other)
    if (same === false || (isStrict && same !== true)) return same
  }
  return true
}
