/**
 * Schema: what the program knows about the shape of an object, as data. Built-in kinds get theirs from the generated
 * tables of `apis`, custom resources from their CRD at run time; decoding, patching, server-side apply, OpenAPI and
 * protobuf are each written once against this.
 *
 * Canonical form is the one in-memory form of an object: exactly the value that upstream's JSON encoder would write.
 * Struct fields come in Go's declaration order, map keys sorted; a field that is empty and omitted when empty is
 * absent; a field written even when empty is there (`rules: null`). Decoders produce it, encoders rely on it.
 */

/** How a list is merged by server-side apply: whole, as a set of values, or as a map keyed by `mapKeys`. */
export type ListType = 'atomic' | 'set' | 'map'

/** Strategic merge directives of a field: `merge`, `replace`, `retainKeys`, or several of them. */
export type PatchStrategy = 'merge' | 'replace' | 'retainKeys'

/**
 * Scalars by their Go type. `bytes` is base64 text in JSON. `quantity`, `time`, `microtime`, `duration` and
 * `int-or-string` are the types whose text is normalised on decoding.
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
  /** The Go type that error texts show: `int32`, `v1.PodPhase`, … */
  readonly goType: string
}

export interface ListSchema {
  readonly type: 'list'
  readonly items: Schema
  /** Null items are kept as null rather than turned into the zero value: a Go slice of pointers. */
  readonly pointerItems: boolean
  /** Go's name when the slice type has one: `v1.ExtraValue`. Otherwise error texts show `[]` and the items' type. */
  readonly goType?: string
  /** How it merges, where no field says so: lists in lists and maps of custom resources. */
  readonly listType?: ListType
  readonly mapKeys?: readonly string[]
}

/** A Go map with string keys, or an OpenAPI object with additionalProperties. */
export interface MapSchema {
  readonly type: 'map'
  readonly values: Schema
  /** Go's name when it is not `map[string]` and the values' type: `v1.ResourceList`, `map[v1.ResourceName]…`. */
  readonly goType?: string
  /** `atomic`: server-side apply owns it as a whole, where no field says so. */
  readonly mapType?: 'granular' | 'atomic'
}

export interface StructSchema {
  readonly type: 'struct'
  /** Go's name with its package, as error texts show it: `v1.DeploymentSpec`. For custom resources the path. */
  readonly goType: string
  /** By JSON name, in Go's declaration order. Inlined members are already flattened in. */
  readonly fields: ReadonlyMap<string, FieldSchema>
  /** `atomic`: server-side apply owns the struct as a whole. */
  readonly mapType: 'granular' | 'atomic'
  /** Unknown fields are kept: custom resources with x-kubernetes-preserve-unknown-fields. */
  readonly preserveUnknown: boolean
  /** Fields only the protobuf codec needs; absent for custom resources, which have no protobuf form. */
  readonly protobuf?: ProtobufMessage
}

/** Any JSON value, kept as it came: RawExtension, apiextensions JSON, FieldsV1, untyped parts of custom resources. */
export interface AnySchema {
  readonly type: 'any'
  /** How protobuf carries it: raw JSON bytes in field 1 of a message, or not at all. */
  readonly goType: string
  /**
   * For the types that are one thing or another in JSON (`v1.JSONSchemaPropsOrBool`, `…OrArray`, `…OrStringArray`): the
   * Go struct behind them. Each of its fields is one alternative, and its message is their protobuf form.
   */
  readonly alternatives?: StructSchema
  /** Server-side apply owns maps in it entry by entry, as in untyped parts of custom resources; otherwise it is whole. */
  readonly deduced?: boolean
}

export type Schema = ScalarSchema | ListSchema | MapSchema | StructSchema | AnySchema

export interface FieldSchema {
  readonly name: string
  readonly schema: Schema
  /** OpenAPI's `required`. Go decoding does not enforce it; validation and OpenAPI documents use it. */
  readonly required: boolean
  /** A Go pointer: zero and absent differ. Otherwise a zero value means absent (if omitted when empty). */
  readonly pointer: boolean
  /** Left out of JSON when empty. Otherwise always written, as zero, "" , {} or null. */
  readonly omitEmpty: boolean
  /** Server-side apply: how a list merges. Absent means atomic for lists. */
  readonly listType?: ListType
  readonly mapKeys?: readonly string[]
  /** Server-side apply: the field's map or struct is owned as a whole. */
  readonly mapType?: 'granular' | 'atomic'
  readonly patchStrategy?: readonly PatchStrategy[]
  readonly patchMergeKey?: string
  /** OpenAPI's default: what server-side apply assumes for an absent list-map key. */
  readonly default?: unknown
  readonly enum?: readonly string[]
  /**
   * To the rules of its kind an empty list or map is not the same as none, so it is kept as it was sent until the object
   * is stored. Nobody owns it all the same.
   */
  readonly emptyCounts?: boolean
  /** The feature gate that must be on for the field to be kept on create. */
  readonly gate?: string
}

/** How a struct travels in protobuf: fields in ascending number, members that JSON inlines as messages of their own. */
export interface ProtobufMessage {
  /** Go's name of the struct behind it, which type errors show for members that JSON inlines. */
  readonly goType?: string
  readonly fields: readonly ProtobufField[]
}

export interface ProtobufField {
  readonly number: number
  readonly wire: ProtobufType
  readonly repeated: boolean
  /**
   * The JSON field it fills. Absent for `inline`: a nested message whose fields belong to the enclosing struct. A list
   * that is not `repeated` (`v1.Verbs`) travels inside a message as its field 1, as do lists that are values of a map.
   */
  readonly field?: FieldSchema
  readonly inline?: ProtobufMessage
}

export type ProtobufType = 'string' | 'bytes' | 'bool' | 'int32' | 'int64' | 'double' | 'message' | 'map'
