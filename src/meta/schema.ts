/**
 * Schema: the structure of an object as data. Decoding, patching, server-side apply, OpenAPI and protobuf all use
 * schemas.
 *
 * The canonical form is the in-memory form of an object: the value that upstream's JSON encoder would write. Struct
 * fields are in Go's declaration order, and map keys are sorted. Empty fields with omitempty are absent; fields that
 * are always written are present (`rules: null`).
 */

/** The merge type of a list in server-side apply: atomic, a set, or a map keyed by `mapKeys`. */
export type ListType = 'atomic' | 'set' | 'map'

/** Strategic merge directives of a field: `merge`, `replace`, `retainKeys`, or several. */
export type PatchStrategy = 'merge' | 'replace' | 'retainKeys'

/**
 * Scalars by Go type. `bytes` is base64 text in JSON. Decoding normalizes `quantity`, `time`, `microtime`, `duration`
 * and `int-or-string`.
 */
export type ScalarType =
  | 'string'
  | 'boolean'
  | 'int32'
  | 'int64'
  | 'float64'
  | 'bytes'
  | 'quantity'
  | 'time'
  | 'microtime'
  | 'duration'
  | 'int-or-string'

export interface ScalarSchema {
  readonly type: ScalarType
  /** The Go type in error texts: `int32`, `v1.PodPhase`, … */
  readonly goType: string
}

export interface ListSchema {
  readonly type: 'list'
  readonly items: Schema
  /** Null items stay null instead of becoming the zero value: a Go slice of pointers. */
  readonly pointerItems: boolean
  /** The Go name of a named slice type: `v1.ExtraValue`. Otherwise error texts have `[]` and the item type. */
  readonly goType?: string
  /** The merge type if no field defines it: nested lists and maps of custom resources. */
  readonly listType?: ListType
  readonly mapKeys?: readonly string[]
}

/** A Go map with string keys, or an OpenAPI object with additionalProperties. */
export interface MapSchema {
  readonly type: 'map'
  readonly values: Schema
  /** The Go name if it is not `map[string]` and the value type: `v1.ResourceList`, `map[v1.ResourceName]…`. */
  readonly goType?: string
  /** `atomic`: server-side apply owns it as a whole, if no field defines it. */
  readonly mapType?: 'granular' | 'atomic'
}

export interface StructSchema {
  readonly type: 'struct'
  /** The Go name with its package in error texts: `v1.DeploymentSpec`. For custom resources the path. */
  readonly goType: string
  /** By JSON name, in Go's declaration order, with inlined members flattened. */
  readonly fields: ReadonlyMap<string, FieldSchema>
  /** `atomic`: server-side apply owns the struct as a whole. */
  readonly mapType: 'granular' | 'atomic'
  /** Keeps unknown fields: custom resources with x-kubernetes-preserve-unknown-fields. */
  readonly preserveUnknown: boolean
  /** Only for the protobuf codec; absent for custom resources, which have no protobuf form. */
  readonly protobuf?: ProtobufMessage
}

/** Any JSON value, unchanged: RawExtension, apiextensions JSON, FieldsV1, untyped parts of custom resources. */
export interface AnySchema {
  readonly type: 'any'
  /** The protobuf form: raw JSON bytes in field 1 of a message, or none. */
  readonly goType: string
  /**
   * For union types in JSON (`v1.JSONSchemaPropsOrBool`, `…OrArray`, `…OrStringArray`): the Go struct behind them. Each
   * field is one alternative, and its message is their protobuf form.
   */
  readonly alternatives?: StructSchema
  /**
   * Server-side apply owns its maps entry by entry, as in untyped parts of custom resources; otherwise it is atomic.
   */
  readonly deduced?: boolean
}

export type Schema = ScalarSchema | ListSchema | MapSchema | StructSchema | AnySchema

export interface FieldSchema {
  readonly name: string
  readonly schema: Schema
  /** OpenAPI's `required`. Go decoding does not enforce it; validation and OpenAPI documents use it. */
  readonly required: boolean
  /** A Go pointer: zero and absent differ. Otherwise zero means absent (with omitempty). */
  readonly pointer: boolean
  /** Omitted from JSON if empty. Otherwise always written, as zero, "" , {} or null. */
  readonly omitEmpty: boolean
  /** Server-side apply: the merge type of a list. Absent means atomic. */
  readonly listType?: ListType
  readonly mapKeys?: readonly string[]
  /** Server-side apply owns the field's map or struct as a whole. */
  readonly mapType?: 'granular' | 'atomic'
  readonly patchStrategy?: readonly PatchStrategy[]
  readonly patchMergeKey?: string
  /** OpenAPI's default: the value of an absent list-map key in server-side apply. */
  readonly default?: unknown
  readonly enum?: readonly string[]
  /**
   * Validation distinguishes an empty list or map from an absent one, so the empty value is kept until the object is
   * stored. It has no owner.
   */
  readonly emptyCounts?: boolean
  /** The feature gate for keeping the field on create. */
  readonly gate?: string
}

/** The protobuf form of a struct: fields by ascending number, inlined JSON members as nested messages. */
export interface ProtobufMessage {
  /** The Go name of the struct behind it, for type errors of inlined members. */
  readonly goType?: string
  readonly fields: readonly ProtobufField[]
}

export interface ProtobufField {
  readonly number: number
  readonly wire: ProtobufType
  readonly repeated: boolean
  /**
   * The JSON field. Absent for `inline`: a nested message whose fields belong to the enclosing struct. A list that is
   * not `repeated` (`v1.Verbs`) is field 1 of a message, like lists as map values.
   */
  readonly field?: FieldSchema
  readonly inline?: ProtobufMessage
}

export type ProtobufType = 'string' | 'bytes' | 'bool' | 'int32' | 'int64' | 'double' | 'message' | 'map'
