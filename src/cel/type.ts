/**
 * CEL's types. A schema or Kubernetes declares object types, which their names identify. Size limits of a type serve
 * the cost estimator and do not affect equality.
 */

export type CelType =
  | SimpleType
  | ListType
  | MapType
  | ObjectType
  | OpaqueType
  | TypeOfType
  | ParameterType
  | WrapperType

export interface SimpleType {
  readonly kind:
    | 'null'
    | 'bool'
    | 'int'
    | 'uint'
    | 'double'
    | 'string'
    | 'bytes'
    | 'timestamp'
    | 'duration'
    | 'dyn'
    | 'error'
  /** Of what a schema bounds: bytes of a string. */
  readonly maxSize?: number
  /** Declared by upstream, but values are handed over as they are in JSON: functions look at them before they believe it. */
  readonly isUnsure?: boolean
  /** Of `dyn`: google.protobuf.Any, which differs in its name, and in that there are no values of it. */
  readonly isAny?: boolean
}

export interface ListType {
  readonly kind: 'list'
  readonly element: CelType
  readonly maxSize?: number
  /** How a schema's list compares and adds up; default: in order. */
  readonly semantics?: { readonly listType: 'set' } | { readonly listType: 'map'; readonly keys: readonly string[] }
}

export interface MapType {
  readonly kind: 'map'
  readonly key: CelType
  readonly value: CelType
  readonly maxSize?: number
  /** Whether the bounds of values count for `m.key` too: of the attributes of devices. */
  readonly boundsFields?: boolean
}

export interface ObjectType {
  readonly kind: 'object'
  readonly name: string
  /** By the name an expression uses, which may be escaped (`__dash__`). Looked up lazily: types may be recursive. */
  readonly field: (name: string) => ObjectField | undefined
  readonly maxSize?: number
}

export interface ObjectField {
  readonly type: CelType
  /** The key in the JSON value. */
  readonly jsonName: string
}

/** `optional_type(T)`, `kubernetes.Quantity`, `net.IP`, … */
export interface OpaqueType {
  readonly kind: 'opaque'
  readonly name: string
  readonly parameters: readonly CelType[]
}

/** The type of a type: `type(1)` is `type(int)`. */
export interface TypeOfType {
  readonly kind: 'type'
  readonly of: CelType | undefined
}

/** `A` in `list(A).contains(A)`. */
export interface ParameterType {
  readonly kind: 'parameter'
  readonly name: string
}

/** A google.protobuf wrapper: the scalar, or null. */
export interface WrapperType {
  readonly kind: 'wrapper'
  readonly of: SimpleType
  /** Of 32 bits. */
  readonly isNarrow?: boolean
}

const simple = (kind: SimpleType['kind']): SimpleType => ({ kind })

export const NULL: SimpleType = simple('null')
export const BOOL: SimpleType = simple('bool')
export const INT: SimpleType = simple('int')
export const UINT: SimpleType = simple('uint')
export const DOUBLE: SimpleType = simple('double')
export const STRING: SimpleType = simple('string')
export const BYTES: SimpleType = simple('bytes')
export const TIMESTAMP: SimpleType = simple('timestamp')
export const DURATION: SimpleType = simple('duration')
export const DYN: SimpleType = simple('dyn')
export const ERROR: SimpleType = simple('error')

export const listOf = (element: CelType): ListType => ({ kind: 'list', element })
export const mapOf = (key: CelType, value: CelType): MapType => ({ kind: 'map', key, value })
export const opaque = (name: string, ...parameters: CelType[]): OpaqueType => ({ kind: 'opaque', name, parameters })
export const optionalOf = (type: CelType): OpaqueType => opaque('optional_type', type)
export const typeOf = (of?: CelType): TypeOfType => ({ kind: 'type', of })
export const parameter = (name: string): ParameterType => ({ kind: 'parameter', name })
export const wrapperOf = (of: SimpleType): WrapperType => ({ kind: 'wrapper', of })

/** As compile messages print it: `map(string, duration)`. */
export function formatType(type: CelType): string {
  if (type.kind === 'opaque' || type.kind === 'object' || type.kind === 'parameter')
    return print(type, formatType, type.name)
  return print(type, formatType, type.kind === 'error' ? '!error!' : type.kind)
}

/** As upstream prints the type of an expression elsewhere: `map(string, google.protobuf.Duration)`. */
export function describeType(type: CelType): string {
  return print(type, describeType, runtimeTypeName(type))
}

function print(type: CelType, printParameter: (type: CelType) => string, name: string): string {
  if (type.kind === 'wrapper') return `wrapper(${type.of.kind})`
  const parameters = parametersOf(type)
  return parameters.length === 0 ? name : `${name}(${parameters.map(printParameter).join(', ')})`
}

/** The name that a value has at run time, where parameters are gone. */
export function runtimeTypeName(type: CelType): string {
  switch (type.kind) {
    case 'null':
      return 'null_type'
    case 'timestamp':
      return 'google.protobuf.Timestamp'
    case 'duration':
      return 'google.protobuf.Duration'
    case 'wrapper':
      return type.of.kind
    case 'dyn':
      return type.isAny === true ? 'google.protobuf.Any' : type.kind
    case 'object':
    case 'opaque':
    case 'parameter':
      return type.name
    default:
      return type.kind
  }
}

export function parametersOf(type: CelType): readonly CelType[] {
  switch (type.kind) {
    case 'list':
      return [type.element]
    case 'map':
      return [type.key, type.value]
    case 'opaque':
      return type.parameters
    case 'type':
      return type.of === undefined ? [] : [type.of]
    default:
      return []
  }
}

/** The same type with each parameter replaced; itself, with its size, if none changes. */
export function withParameters(type: CelType, replace: (parameter: CelType) => CelType): CelType {
  const before = parametersOf(type)
  const after = before.map(replace)
  if (after.every((parameter, i) => parameter === before[i])) return type
  const [first, second] = after as [CelType, CelType]
  switch (type.kind) {
    case 'list':
      return listOf(first)
    case 'map':
      return mapOf(first, second)
    case 'opaque':
      return { ...type, parameters: after }
    default:
      return typeOf(first)
  }
}

/** A wrapper is the same as what it wraps: only null tells them apart. Sizes never count. */
export function isSameType(a: CelType, b: CelType): boolean {
  if (a === b) return true
  const [left, right] = [unwrap(a), unwrap(b)]
  if (left.kind !== right.kind || runtimeTypeName(left) !== runtimeTypeName(right)) return false
  const others = parametersOf(right)
  const own = parametersOf(left)
  return own.length === others.length && own.every((type, i) => isSameType(type, others[i] as CelType))
}

export function unwrap(type: CelType): Exclude<CelType, WrapperType> {
  return type.kind === 'wrapper' ? type.of : type
}

/** The type parameter of `optional_type(T)`; undefined for every other type. */
export function optionalValueOf(type: CelType): CelType | undefined {
  return type.kind === 'opaque' && type.name === 'optional_type' ? type.parameters[0] : undefined
}
