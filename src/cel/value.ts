/**
 * CEL's values in memory. The common ones are plain: null, booleans, strings, and an int that is exact as a number; larger
 * ints are bigints, never both for the same value. What JavaScript would mix up with them has a class.
 */

export type Value =
  | null
  | boolean
  | string
  | number
  | bigint
  | Uint8Array
  | Double
  | Uint
  | ListValue
  | MapValue
  | Other

/** A double; a bare number is an int. */
export class Double {
  readonly value: number
  constructor(value: number) {
    this.value = value
  }
}

export class Uint {
  readonly value: bigint
  constructor(value: bigint) {
    this.value = value
  }
}

/** Arrays made by the evaluator, and views of JSON arrays whose elements are typed when they are looked at. */
export interface ListValue {
  readonly isList: true
  readonly size: number
  at(index: number): Value
}

/** Maps and declared objects: the same, seen by key. */
export interface MapValue {
  readonly isMap: true
  readonly size: number
  get(key: Value): Value | undefined
  keys(): Iterable<Value>
}

/** Timestamps, durations, types, optionals, quantities, addresses, …: each a class that names its type. */
export interface Other {
  readonly typeName: string
}

/**
 * A failed part of an evaluation. A value like others while the rest is evaluated, because `||` and `&&` may do without
 * it and because what it cost to fail counts; only the end of the evaluation throws, as a CelError.
 */
export class Failure {
  readonly message: string
  constructor(message: string) {
    this.message = message
  }
}

export type Result = Value | Failure

/** What an evaluation ends with when it does not end with a value; `message` is upstream's text. */
export class CelError extends Error {
  override name = 'CelError'
}

/** The cost ran over the limit, of the expression or of all that share a budget. */
export class CelBudgetError extends CelError {
  override name = 'CelBudgetError'
}
