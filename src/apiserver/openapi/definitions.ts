/**
 * Creates OpenAPI definitions from schemas, one for each struct that a document references. `Dialect` contains the
 * differences between OpenAPI 2 and 3.
 */
import { originOf } from '#apis/schemas.ts'
import type { FieldSchema, ScalarSchema, Schema, StructSchema } from '#meta/schema.ts'

import type { Definition, Dialect } from '../registry/openapi-definition.ts'
import { valuesOf } from './enums.ts'

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

/** Types with a separate definition although they are not structs here. */
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

const API_EXTENSIONS = 'io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1'

/** Untyped values by Go's name: an object, or any value. */
const UNTYPED: Readonly<Record<string, readonly [name: string, definition: Definition]>> = {
  RawExtension: ['io.k8s.apimachinery.pkg.runtime.RawExtension', { type: 'object' }],
  FieldsV1: [`${META}.FieldsV1`, { type: 'object' }],
  JSON: [`${API_EXTENSIONS}.JSON`, {}],
  JSONSchemaPropsOrArray: [`${API_EXTENSIONS}.JSONSchemaPropsOrArray`, {}],
  JSONSchemaPropsOrBool: [`${API_EXTENSIONS}.JSONSchemaPropsOrBool`, {}],
  JSONSchemaPropsOrStringArray: [`${API_EXTENSIONS}.JSONSchemaPropsOrStringArray`, {}],
}

/** Unions: structs in which one field names the one that is set. */
const UNIONS: Readonly<Record<string, Definition>> = {
  'core.v1.AppArmorProfile': {
    discriminator: 'type',
    'fields-to-discriminateBy': { localhostProfile: 'LocalhostProfile' },
  },
  'core.v1.PodSchedulingGroup': { 'fields-to-discriminateBy': { podGroupName: 'PodGroupName' } },
  'core.v1.SeccompProfile': {
    discriminator: 'type',
    'fields-to-discriminateBy': { localhostProfile: 'LocalhostProfile' },
  },
  'flowcontrol.v1.LimitResponse': { discriminator: 'type', 'fields-to-discriminateBy': { queuing: 'Queuing' } },
  'flowcontrol.v1.PriorityLevelConfigurationSpec': {
    discriminator: 'type',
    'fields-to-discriminateBy': { exempt: 'Exempt', limited: 'Limited' },
  },
  'flowcontrol.v1.Subject': {
    discriminator: 'kind',
    'fields-to-discriminateBy': { group: 'Group', serviceAccount: 'ServiceAccount', user: 'User' },
  },
}

/** Fields marked as granular although their type already implies it. */
const GRANULAR = new Set([
  'io.k8s.api.core.v1.PersistentVolumeClaimStatus.allocatedResourceStatuses',
  'io.k8s.api.core.v1.PersistentVolumeSpec.claimRef',
])

/** Collects definitions for one document. */
export class Definitions {
  readonly found: Map<string, Definition> = new Map()
  readonly #dialect: Dialect
  readonly #describe: (name: string, field?: string) => string
  readonly #kindsOf: (name: string) => readonly object[]

  /** `kindsOf` returns the kinds of a definition, for `x-kubernetes-group-version-kind`. */
  constructor(
    dialect: Dialect,
    describe: (name: string, field?: string) => string,
    kindsOf: (name: string) => readonly object[],
  ) {
    this.#dialect = dialect
    this.#describe = describe
    this.#kindsOf = kindsOf
  }

  /** A reference to the struct's definition, which is added with everything it references. */
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
    const union = UNIONS[name.slice('io.k8s.api.'.length)]
    return {
      ...(description === '' ? {} : { description }),
      type: 'object',
      ...(fields.size === 0 ? {} : { properties }),
      ...(required.length === 0 ? {} : { required }),
      ...(kinds.length === 0 ? {} : { 'x-kubernetes-group-version-kind': kinds }),
      ...(mapType === 'atomic' ? { 'x-kubernetes-map-type': 'atomic' } : {}),
      ...(union === undefined ? {} : { 'x-kubernetes-unions': [union] }),
    }
  }

  #property(struct: string, field: FieldSchema): Definition {
    const description = this.#describe(struct, field.name)
    const { listType, mapKeys, patchStrategy, patchMergeKey } = field
    const mapType = GRANULAR.has(`${struct}.${field.name}`) ? 'granular' : field.mapType
    return {
      ...(description === '' ? {} : { description }),
      ...withValues(this.#withDefault(field), valuesOf(struct, field.name)),
      ...(listType === undefined ? {} : { 'x-kubernetes-list-type': listType }),
      ...(mapKeys === undefined ? {} : { 'x-kubernetes-list-map-keys': mapKeys }),
      ...(mapType === undefined ? {} : { 'x-kubernetes-map-type': mapType }),
      ...(patchMergeKey === undefined ? {} : { 'x-kubernetes-patch-merge-key': patchMergeKey }),
      ...(patchStrategy === undefined ? {} : { 'x-kubernetes-patch-strategy': patchStrategy.join(',') }),
    }
  }

  #withDefault(field: FieldSchema): Definition {
    const own = this.#type(field.schema)
    const fallback = field.default ?? (field.pointer ? undefined : defaultOf(field.schema, !field.omitEmpty))
    if (!this.#dialect.wrapsRefs) return own
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
        return this.#untyped(schema.goType)
      default:
        return this.#scalar(schema)
    }
  }

  /** Items and map values have Go's zero value as their default. */
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
    this.found.set(name, this.#described(name, this.#dialect.wrapsRefs ? v3 : v2))
    return { $ref: this.#dialect.refPrefix + name }
  }

  #untyped(goType: string): Definition {
    const known = UNTYPED[goType.slice(goType.lastIndexOf('.') + 1)]
    if (known === undefined) return {}
    const [name, definition] = known
    this.found.set(name, this.#described(name, definition))
    return { $ref: this.#dialect.refPrefix + name }
  }

  #described(name: string, definition: Definition): Definition {
    const description = this.#describe(name)
    return description === '' ? definition : { description, ...definition }
  }
}

/** For lists and maps the members have these values. */
function withValues(definition: Definition, values: readonly string[] | undefined): Definition {
  if (values === undefined) return definition
  for (const inner of ['items', 'additionalProperties']) {
    const members = definition[inner]
    if (members !== undefined) return { ...definition, [inner]: { ...(members as Definition), enum: values } }
  }
  return { ...definition, enum: values }
}

/** `io.k8s.api.core.v1.PodSpec`. */
export function nameOf(struct: StructSchema): string {
  const origin = originOf(struct)
  if (origin === undefined) return struct.goType
  return `${HOMES[origin.table] ?? `io.k8s.api.${origin.table}`}.${origin.goName}`
}

/** Go's zero value of a field, if the document shows it as default. */
function defaultOf(schema: Schema, isWritten: boolean): unknown {
  if (schema.type === 'struct') return {}
  if (!isWritten) return undefined
  if (schema.type === 'string') return ''
  if (schema.type === 'boolean') return false
  return schema.type === 'int32' || schema.type === 'int64' || schema.type === 'float64' ? 0 : undefined
}
