/**
 * CEL's values in memory. Null, booleans, strings and ints are plain JavaScript values; an int is a bigint if a number
 * would be inexact. All other types have a class.
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
export abstract class ListValue {
  abstract readonly size: number
  /** Within bounds. Fails where JSON is not what its schema says. */
  abstract at(index: number): Result
  /** Made from JSON by a declared type. */
  get isTyped(): boolean {
    return false
  }
  /** Of lists whose order does not count (sets, and maps in the form of lists): how they compare. Sizes are equal. */
  equalsUnordered(_other: ListValue): boolean | Failure | undefined {
    return undefined
  }
  /** Of the same: how they add up. */
  plusUnordered(_other: ListValue): ListValue | undefined {
    return undefined
  }
}

/** Maps and declared objects: the same, seen by key. */
export abstract class MapValue {
  abstract readonly size: number
  /** Fails where JSON is not what its schema says, or the key is of no use here. */
  abstract get(key: Value): Result | undefined
  abstract keys(): Iterable<Value>
  /** Made from JSON by a declared type. */
  get isTyped(): boolean {
    return false
  }
  /** Of declared objects, which compare by more than what expressions can see. Sizes are equal. */
  equalsDeclared(_other: MapValue): boolean | Failure | undefined {
    return undefined
  }
}

/** Timestamps, durations, types, optionals, quantities, addresses, …: each a class that names its type. */
export interface Other {
  readonly typeName: string
}

/** Of libraries: quantities, addresses, versions, … Two of different types cannot be compared. */
export abstract class OpaqueValue implements Other {
  abstract readonly typeName: string
  /** `other` is of the same class. */
  abstract equals(other: this): boolean
  toString(): string {
    return this.typeName
  }
  /** The size by which costs are computed. */
  get size(): number {
    return 1
  }
}

export class TypeValue implements Other {
  readonly typeName = 'type'
  readonly name: string
  constructor(name: string) {
    this.name = name
  }
}

export class Optional implements Other {
  readonly typeName = 'optional_type'
  /** Undefined: none. */
  readonly value: Value | undefined
  constructor(value: Value | undefined) {
    this.value = value
  }
  static readonly none: Optional = new Optional(undefined)
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

export const NO_SUCH_OVERLOAD: Failure = new Failure('no such overload')

/** The error of an evaluation; `message` is upstream's text. */
export class CelError extends Error {
  override name = 'CelError'
}

/** The cost ran over the limit, of the expression or of all that share a budget. */
export class CelBudgetError extends CelError {
  override name = 'CelBudgetError'
}

export const MIN_INT64: bigint = -(2n ** 63n)
export const MAX_INT64: bigint = 2n ** 63n - 1n
export const MAX_UINT64: bigint = 2n ** 64n - 1n

/** The int, as the plain number if that is exact. Within int64. */
export function intOf(value: bigint): number | bigint {
  const number = Number(value)
  return Number.isSafeInteger(number) ? number : value
}

export const isInt = (value: Result): value is number | bigint => typeof value === 'number' || typeof value === 'bigint'

/** The name of a value's type, as error messages and `type()` have it. */
export function typeNameOf(value: Result): string {
  switch (typeof value) {
    case 'string':
      return 'string'
    case 'boolean':
      return 'bool'
    case 'number':
    case 'bigint':
      return 'int'
    default:
      return objectTypeName(value)
  }
}

function objectTypeName(value: Exclude<Result, string | boolean | number | bigint>): string {
  if (value === null) return 'null_type'
  if (value instanceof Double) return 'double'
  if (value instanceof Uint) return 'uint'
  if (value instanceof ListValue) return 'list'
  if (value instanceof MapValue) return 'map'
  if (value instanceof Uint8Array) return 'bytes'
  return value instanceof Failure ? 'error' : value.typeName
}

/** The Go type behind a value, which two messages show. */
export function goTypeOf(value: Value): string {
  const name = typeNameOf(value)
  const known = goTypes[name]
  return known ?? '*types.baseMap'
}

const goTypes: Readonly<Record<string, string>> = {
  null_type: 'types.Null',
  bool: 'types.Bool',
  int: 'types.Int',
  uint: 'types.Uint',
  double: 'types.Double',
  string: 'types.String',
  bytes: 'types.Bytes',
  type: '*types.Type',
  list: '*types.baseList',
  optional_type: '*types.Optional',
  'google.protobuf.Timestamp': 'types.Timestamp',
  'google.protobuf.Duration': 'types.Duration',
  'kubernetes.Quantity': 'cel.Quantity',
  'kubernetes.URL': 'cel.URL',
  'kubernetes.Semver': 'cel.Semver',
  'kubernetes.NamedFormat': 'cel.Format',
  'net.IP': 'cel.IP',
  'net.CIDR': 'cel.CIDR',
}
