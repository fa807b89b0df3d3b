/** Compiles frequent CEL operators with a fast path for the common case, such as two ints or two strings. */
import { Failure, NO_SUCH_OVERLOAD, OpaqueValue, type Result, type Value } from '../value.ts'
import { add, subtract } from '../values/arithmetic.ts'
import { equal } from '../values/equality.ts'
import { sizeOf, tenth } from '../values/size.ts'
import { charge, type Evaluate } from './frame.ts'

type Binary = (left: Evaluate, right: Evaluate) => Evaluate

const strict =
  (operate: (a: Value, b: Value) => Result): ((a: Result, b: Result) => Result) =>
  (a, b) => {
    if (a instanceof Failure) return a
    return b instanceof Failure ? b : operate(a, b)
  }

const slowAdd = strict(add)
const slowSubtract = strict(subtract)

/** By the id of the overload; only for ints, of which each costs 1. */
export function intOperator(id: string, slow: (a: Value, b: Value) => Result): Binary | undefined {
  return intOperators[id]?.(strict(slow))
}

const intOperators: Readonly<Record<string, (slow: (a: Result, b: Result) => Result) => Binary>> = {
  less_int64: (slow) => (left, right) => (frame) => {
    const a = left(frame)
    const b = right(frame)
    charge(frame, 1)
    return typeof a === 'number' && typeof b === 'number' ? a < b : slow(a, b)
  },
  less_equals_int64: (slow) => (left, right) => (frame) => {
    const a = left(frame)
    const b = right(frame)
    charge(frame, 1)
    return typeof a === 'number' && typeof b === 'number' ? a <= b : slow(a, b)
  },
  greater_int64: (slow) => (left, right) => (frame) => {
    const a = left(frame)
    const b = right(frame)
    charge(frame, 1)
    return typeof a === 'number' && typeof b === 'number' ? a > b : slow(a, b)
  },
  greater_equals_int64: (slow) => (left, right) => (frame) => {
    const a = left(frame)
    const b = right(frame)
    charge(frame, 1)
    return typeof a === 'number' && typeof b === 'number' ? a >= b : slow(a, b)
  },
  add_int64: () => (left, right) => (frame) => {
    const a = left(frame)
    const b = right(frame)
    charge(frame, 1)
    const sum = typeof a === 'number' && typeof b === 'number' ? a + b : Infinity
    return Number.isSafeInteger(sum) ? sum : slowAdd(a, b)
  },
  subtract_int64: () => (left, right) => (frame) => {
    const a = left(frame)
    const b = right(frame)
    charge(frame, 1)
    const difference = typeof a === 'number' && typeof b === 'number' ? a - b : Infinity
    return Number.isSafeInteger(difference) ? difference : slowSubtract(a, b)
  },
}

/** `==`, and `!=` where `negated`. */
export function equality(left: Evaluate, right: Evaluate, negated: boolean): Evaluate {
  return (frame) => {
    const a = left(frame)
    const b = right(frame)
    charge(frame, equalityCost(a, b, negated))
    if (typeof a === 'string' && typeof b === 'string') return (a === b) !== negated
    if (a instanceof Failure) return a
    if (b instanceof Failure) return b
    const same = equal(a, b)
    if (negated) return same !== true
    return same
  }
}

/** Values of libraries cost 1 to compare, but by their size to tell apart. */
function equalityCost(a: Result, b: Result, negated: boolean): number {
  if (typeof a === 'string' && typeof b === 'string') {
    const units = Math.min(a.length, b.length)
    if (units <= 10) return units === 0 ? 0 : 1
  }
  if (!negated && a instanceof OpaqueValue) return 1
  return tenth(Math.min(sizeOf(a), sizeOf(b)))
}

export function conjunction(left: Evaluate, right: Evaluate): Evaluate {
  return (frame) => {
    const a = left(frame)
    if (a === false) return false
    const b = right(frame)
    if (b === false) return false
    if (a === true && b === true) return true
    return asFailure(a === true ? b : a)
  }
}

export function disjunction(left: Evaluate, right: Evaluate): Evaluate {
  return (frame) => {
    const a = left(frame)
    if (a === true) return true
    const b = right(frame)
    if (b === true) return true
    if (a === false && b === false) return false
    return asFailure(a === false ? b : a)
  }
}

const asFailure = (value: Result): Failure => (value instanceof Failure ? value : NO_SUCH_OVERLOAD)

/** `@not_strictly_false`: only false is false. */
export function notStrictlyFalse(part: Evaluate): Evaluate {
  return (frame) => {
    const value = part(frame)
    charge(frame, 1)
    return value !== false
  }
}
