/**
 * Implements `+ - * / %` on CEL values, with overflow checks. Ints are numbers while the result is exact, and bigints
 * otherwise.
 */
import { spendEffort } from '../effort.ts'
import {
  Double,
  Failure,
  ListValue,
  MAX_INT64,
  MAX_UINT64,
  MIN_INT64,
  NO_SUCH_OVERLOAD,
  Uint,
  intOf,
  isInt,
  type Result,
  type Value,
} from '../value.ts'
import { absence } from './compare.ts'
import { addLists } from './list.ts'
import { Duration, Timestamp, addDurations, durationOrOverflow, shiftTimestamp, timeBetween } from './time.ts'

const INT_OVERFLOW = new Failure('integer overflow')
const UINT_OVERFLOW = new Failure('unsigned integer overflow')
const DIVISION_BY_ZERO = new Failure('division by zero')
const MODULUS_BY_ZERO = new Failure('modulus by zero')

const withoutAdd = absence('_+_')
const withoutSubtract = absence('_-_')
const withoutMultiply = absence('_*_')
const withoutDivide = absence('_/_')
const withoutModulo = absence('_%_')
const withoutNegate = absence('-_')

function checkedInt(value: bigint): Result {
  return value > MAX_INT64 || value < MIN_INT64 ? INT_OVERFLOW : intOf(value)
}

function checkedUint(value: bigint): Result {
  return value > MAX_UINT64 || value < 0n ? UINT_OVERFLOW : new Uint(value)
}

export function add(a: Value, b: Value): Result {
  if (isInt(a)) return isInt(b) ? addInts(a, b) : NO_SUCH_OVERLOAD
  if (typeof a === 'string') return typeof b === 'string' ? a + b : NO_SUCH_OVERLOAD
  if (a instanceof ListValue) return b instanceof ListValue ? addLists(a, b) : NO_SUCH_OVERLOAD
  if (a instanceof Double) return b instanceof Double ? new Double(a.value + b.value) : NO_SUCH_OVERLOAD
  if (a instanceof Uint) return b instanceof Uint ? checkedUint(a.value + b.value) : NO_SUCH_OVERLOAD
  if (a instanceof Uint8Array) return b instanceof Uint8Array ? joinBytes(a, b) : NO_SUCH_OVERLOAD
  if (a instanceof Duration || a instanceof Timestamp) return addTimes(a, b)
  return withoutAdd(a)
}

export function addInts(a: number | bigint, b: number | bigint): Result {
  if (typeof a === 'number' && typeof b === 'number') {
    const sum = a + b
    if (Number.isSafeInteger(sum)) return sum
  }
  return checkedInt(BigInt(a) + BigInt(b))
}

function joinBytes(a: Uint8Array, b: Uint8Array): Uint8Array {
  spendEffort(a.length + b.length)
  return new Uint8Array([...a, ...b])
}

function addTimes(a: Duration | Timestamp, b: Value): Result {
  if (a instanceof Duration && b instanceof Duration) return addDurations(a, b)
  if (a instanceof Duration && b instanceof Timestamp) return shiftTimestamp(b, a.nanos)
  if (a instanceof Timestamp && b instanceof Duration) return shiftTimestamp(a, b.nanos)
  return NO_SUCH_OVERLOAD
}

export function subtract(a: Value, b: Value): Result {
  if (isInt(a)) return isInt(b) ? subtractInts(a, b) : NO_SUCH_OVERLOAD
  if (a instanceof Double) return b instanceof Double ? new Double(a.value - b.value) : NO_SUCH_OVERLOAD
  if (a instanceof Uint) return b instanceof Uint ? checkedUint(a.value - b.value) : NO_SUCH_OVERLOAD
  if (a instanceof Duration) return b instanceof Duration ? durationOrOverflow(a.nanos - b.nanos) : NO_SUCH_OVERLOAD
  if (!(a instanceof Timestamp)) return withoutSubtract(a)
  if (b instanceof Timestamp) return timeBetween(a, b)
  if (!(b instanceof Duration)) return NO_SUCH_OVERLOAD
  return b.nanos === MIN_INT64 ? INT_OVERFLOW : shiftTimestamp(a, -b.nanos)
}

export function subtractInts(a: number | bigint, b: number | bigint): Result {
  if (typeof a === 'number' && typeof b === 'number') {
    const difference = a - b
    if (Number.isSafeInteger(difference)) return difference
  }
  return checkedInt(BigInt(a) - BigInt(b))
}

export function multiply(a: Value, b: Value): Result {
  if (isInt(a)) return isInt(b) ? multiplyInts(a, b) : NO_SUCH_OVERLOAD
  if (a instanceof Double) return b instanceof Double ? new Double(a.value * b.value) : NO_SUCH_OVERLOAD
  if (a instanceof Uint) return b instanceof Uint ? checkedUint(a.value * b.value) : NO_SUCH_OVERLOAD
  return withoutMultiply(a)
}

function multiplyInts(a: number | bigint, b: number | bigint): Result {
  if (typeof a === 'number' && typeof b === 'number') {
    const product = a * b
    // Without the sign that a zero of JavaScript may have.
    if (Number.isSafeInteger(product)) return product + 0
  }
  return checkedInt(BigInt(a) * BigInt(b))
}

export function divide(a: Value, b: Value): Result {
  if (isInt(a)) return isInt(b) ? divideInts(a, b) : NO_SUCH_OVERLOAD
  if (a instanceof Double) return b instanceof Double ? new Double(a.value / b.value) : NO_SUCH_OVERLOAD
  if (!(a instanceof Uint)) return withoutDivide(a)
  if (!(b instanceof Uint)) return NO_SUCH_OVERLOAD
  return b.value === 0n ? DIVISION_BY_ZERO : new Uint(a.value / b.value)
}

function divideInts(a: number | bigint, b: number | bigint): Result {
  if (b === 0) return DIVISION_BY_ZERO
  if (typeof a === 'number' && typeof b === 'number') return Math.trunc(a / b) + 0
  return checkedInt(BigInt(a) / BigInt(b))
}

export function modulo(a: Value, b: Value): Result {
  if (isInt(a)) return isInt(b) ? moduloInts(a, b) : NO_SUCH_OVERLOAD
  if (!(a instanceof Uint)) return withoutModulo(a)
  if (!(b instanceof Uint)) return NO_SUCH_OVERLOAD
  return b.value === 0n ? MODULUS_BY_ZERO : new Uint(a.value % b.value)
}

function moduloInts(a: number | bigint, b: number | bigint): Result {
  if (b === 0) return MODULUS_BY_ZERO
  if (a === MIN_INT64 && b === -1) return INT_OVERFLOW
  if (typeof a === 'number' && typeof b === 'number') return (a % b) + 0
  return intOf(BigInt(a) % BigInt(b))
}

export function negate(a: Value): Result {
  if (isInt(a)) return typeof a === 'number' ? 0 - a : checkedInt(-a)
  if (a instanceof Double) return new Double(-a.value)
  if (a instanceof Duration) return durationOrOverflow(-a.nanos)
  return typeof a === 'boolean' ? NO_SUCH_OVERLOAD : withoutNegate(a)
}
