/**
 * CEL's types. An object type is declared, by a schema or by Kubernetes, and known by its name; everything with the same
 * name is the same type. Sizes ride along for the cost estimate and never make two types differ.
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
