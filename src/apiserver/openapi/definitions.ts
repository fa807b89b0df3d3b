/**
 * OpenAPI definitions from schemas: one for each struct that a document reaches. The two versions of OpenAPI differ in how
 * they refer and in what may stand beside a reference; `Dialect` is that difference.
 */
import { originOf } from '#apis/schemas.ts'
import type { FieldSchema, ScalarSchema, Schema, StructSchema } from '#meta/schema.ts'

export type Definition = Record<string, unknown>

export interface Dialect {
  /** `#/components/schemas/` or `#/definitions/`. */
  readonly refPrefix: string
  /** OpenAPI 3 wraps a reference in allOf, so that a default may stand beside it. */
  readonly wrapsRefs: boolean
}

export const V3: Dialect = { refPrefix: '#/components/schemas/', wrapsRefs: true }
export const V2: Dialect = { refPrefix: '#/definitions/', wrapsRefs: false }

const META = 'io.k8s.apimachinery.pkg.apis.meta.v1'
const HOMES: Readonly<Record<string, string>> = {
  'apiextensions.v1': 'io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1',
  'apiextensions.v1beta1': 'io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1beta1',
  'apiregistration.v1': 'io.k8s.kube-aggregator.pkg.apis.apiregistration.v1',
  'apiregistration.v1beta1': 'io.k8s.kube-aggregator.pkg.apis.apiregistration.v1beta1',
  'meta.v1': META,
  'meta.v1beta1': 'io.k8s.apimachinery.pkg.apis.meta.v1beta1',
}

/** Types with a definition of their own though they are no structs here. */
const LEAVES: Readonly<Record<string, readonly [name: string, v3: Definition, v2: Definition]>> = {
  quantity: [
    'io.k8s.apimachinery.pkg.api.resource.Quantity',
    { oneOf: [{ type: 'string' }, { type: 'number' }] },
    { type: 'string' },
  ],
  'int-or-string': [
    'io.k8s.apimachinery.pkg.util.intstr.IntOrString',
    { format: 'int-or-string', oneOf: [{ type: 'integer' }, { type: 'string' }] },
    { format: 'int-or-string', type: 'string' },
  ],
  time: [`${META}.Time`, { format: 'date-time', type: 'string' }, { format: 'date-time', type: 'string' }],
  microtime: [`${META}.MicroTime`, { format: 'date-time', type: 'string' }, { format: 'date-time', type: 'string' }],
  duration: [`${META}.Duration`, { type: 'string' }, { type: 'string' }],
}

const SCALARS: Readonly<Record<string, Definition>> = {
  string: { type: 'string' },
  boolean: { type: 'boolean' },
  int32: { format: 'int32', type: 'integer' },
  int64: { format: 'int64', type: 'integer' },
  float64: { format: 'double', type: 'number' },
  bytes: { format: 'byte', type: 'string' },
}

/** Untyped values by what Go calls them. */
const UNTYPED: Readonly<Record<string, string>> = {
  RawExtension: 'io.k8s.apimachinery.pkg.runtime.RawExtension',
  FieldsV1: `${META}.FieldsV1`,
}

/** Gathers definitions for one document. */
export class Definitions {
  readonly found: Map<string, Definition> = new Map()
  readonly #dialect: Dialect
  readonly #describe: (name: string, field?: string) => string
  readonly #kindsOf: (name: string) => readonly object[]

  /** `kindsOf` gives the group version kinds that a definition is, for `x-kubernetes-group-version-kind`. */
  constructor(
    dialect: Dialect,
    describe: (name: string, field?: string) => string,
    kindsOf: (name: string) => readonly object[],
  ) {
    this.#dialect = dialect
    this.#describe = describe
    this.#kindsOf = kindsOf
  }

  /** A reference to the struct's definition, which is added with all that it refers to. */
  ref(struct: StructSchema): Definition {
    const name = nameOf(struct)
    if (!this.found.has(name)) {
      this.found.set(name, {})
      this.found.set(name, this.#struct(name, struct))
    }
    return { $ref: this.#dialect.refPrefix + name }
  }

  #struct(name: string, { fields, mapType }: StructSchema): Definition {
    const properties = Object.fromEntries(
      [...fields.values()].map((field) => [field.name, this.#property(name, field)]),
    )
    const required = [...fields.values()].filter((field) => field.required).map((field) => field.name)
    const kinds = this.#kindsOf(name)
    const description = this.#describe(name)
    return {
      ...(description === '' ? {} : { description }),
      type: 'object',
      ...(fields.size === 0 ? {} : { properties }),
      ...(required.length === 0 ? {} : { required }),
      ...(kinds.length === 0 ? {} : { 'x-kubernetes-group-version-kind': kinds }),
      ...(mapType === 'atomic' ? { 'x-kubernetes-map-type': 'atomic' } : {}),
    }
  }

  #property(struct: string, field: FieldSchema): Definition {
    const description = this.#describe(struct, field.name)
    const { listType, mapKeys, mapType, patchStrategy, patchMergeKey } = field
    return {
      ...(description === '' ? {} : { description }),
      ...this.#withDefault(field),
      ...(listType === undefined ? {} : { 'x-kubernetes-list-type': listType }),
      ...(mapKeys === undefined ? {} : { 'x-kubernetes-list-map-keys': mapKeys }),
      ...(mapType === undefined ? {} : { 'x-kubernetes-map-type': mapType }),
      ...(patchMergeKey === undefined ? {} : { 'x-kubernetes-patch-merge-key': patchMergeKey }),
      ...(patchStrategy === undefined ? {} : { 'x-kubernetes-patch-strategy': patchStrategy.join(',') }),
    }
  }

  #withDefault(field: FieldSchema): Definition {
    const own = this.#type(field.schema)
    const fallback = field.default ?? (field.pointer ? undefined : defaultOf(field.schema, field.required))
    if (!this.#dialect.wrapsRefs) return field.default === undefined ? own : { ...own, default: field.default }
    if (own['$ref'] !== undefined) return { allOf: [own], ...(fallback === undefined ? {} : { default: fallback }) }
    return fallback === undefined ? own : { ...own, default: fallback }
  }

  #type(schema: Schema): Definition {
    switch (schema.type) {
      case 'struct':
        return this.ref(schema)
      case 'list':
        return { type: 'array', items: this.#item(schema.items) }
      case 'map':
        return { type: 'object', additionalProperties: this.#item(schema.values) }
      case 'any':
        return schema.alternatives === undefined ? this.#untyped(schema.goType) : {}
      default:
        return this.#scalar(schema)
    }
  }

  /** Items and map values carry Go's zero value as their default. */
  #item(schema: Schema): Definition {
    const own = this.#type(schema)
    if (!this.#dialect.wrapsRefs) return own
    if (own['$ref'] !== undefined) return schema.type === 'struct' ? { allOf: [own], default: {} } : own
    const fallback = defaultOf(schema, true)
    return fallback === undefined ? own : { ...own, default: fallback }
  }

  #scalar({ type }: ScalarSchema): Definition {
    const leaf = LEAVES[type]
    if (leaf === undefined) return SCALARS[type] ?? {}
    const [name, v3, v2] = leaf
    this.found.set(name, this.#dialect.wrapsRefs ? v3 : v2)
    return { $ref: this.#dialect.refPrefix + name }
  }

  #untyped(goType: string): Definition {
    const name = UNTYPED[goType.slice(goType.lastIndexOf('.') + 1)]
    if (name === undefined) return {}
    this.found.set(name, { type: 'object' })
    return { $ref: this.#dialect.refPrefix + name }
  }
}

/** `io.k8s.api.core.v1.PodSpec`. */
export function nameOf(struct: StructSchema): string {
  const origin = originOf(struct)
  if (origin === undefined) return struct.goType
  return `${HOMES[origin.table] ?? `io.k8s.api.${origin.table}`}.${origin.goName}`
}

/** What Go has in a field that nobody set, where the document shows it. */
function defaultOf(schema: Schema, required: boolean): unknown {
  if (schema.type === 'struct') return {}
  if (!required) return undefined
  if (schema.type === 'string') return ''
  if (schema.type === 'boolean') return false
  return schema.type === 'int32' || schema.type === 'int64' || schema.type === 'float64' ? 0 : undefined
}
