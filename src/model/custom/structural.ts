/**
 * The structural schema of a custom resource in memory. It is smaller than JSONSchemaProps, because it omits
 * descriptions and absent fields.
 */
import type { JSONSchemaProps, ValidationRule } from '#apis/apiextensions/v1.ts'
import type { JsonValue } from '#lib/json/value.ts'
import type { ListType } from '#meta/schema.ts'

export interface Structural {
  /** Empty for int-or-string, untyped parts and inside conditions. */
  readonly type: string
  readonly nullable: boolean
  /** `x-kubernetes-preserve-unknown-fields`. */
  readonly preserveUnknown: boolean
  /** `x-kubernetes-embedded-resource`. */
  readonly embedded: boolean
  readonly intOrString: boolean
  readonly properties: ReadonlyMap<string, Structural>
  /** For other properties: their schema, or whether they are allowed. */
  readonly additional: Structural | boolean | undefined
  readonly items: Structural | undefined
  /** Never null, which counts as none. Immutable; copied when it is put into an object. */
  readonly default: JsonValue | undefined
  readonly listType: ListType | undefined
  readonly mapKeys: readonly string[]
  readonly mapType: 'granular' | 'atomic' | undefined
  readonly rules: readonly ValidationRule[]
  /** Value validations; undefined without any. */
  readonly values: ValueRules | undefined
  /** Features of this node and its descendants, so that walks can skip parts. */
  readonly has: Contents
}

/** Bits of `Structural.has`. */
export type Contents = number
export const HAS_DEFAULTS = 1
export const HAS_EMBEDDED = 2
/** Sets and keyed lists. */
export const HAS_UNIQUE = 4
export const HAS_RULES = 8

/** OpenAPI's value validations; absent if unset. */
export interface ValueRules {
  readonly format?: string
  readonly maximum?: number
  readonly exclusiveMaximum?: boolean
  readonly minimum?: number
  readonly exclusiveMinimum?: boolean
  readonly maxLength?: number
  readonly minLength?: number
  readonly pattern?: string
  readonly maxItems?: number
  readonly minItems?: number
  readonly multipleOf?: number
  readonly enum?: readonly JsonValue[]
  readonly maxProperties?: number
  readonly minProperties?: number
  readonly required?: readonly string[]
  readonly allOf?: readonly Structural[]
  readonly oneOf?: readonly Structural[]
  readonly anyOf?: readonly Structural[]
  readonly not?: Structural
}

const NONE: ReadonlyMap<string, never> = new Map<string, never>()
const NO_KEYS: readonly never[] = []

/** Plain scalars by type: most of every schema. */
const plain = new Map<string, Structural>()

/** The schema must be accepted as structural; invalid parts are omitted. Shares only values with it. */
export function structuralOf(schema: JSONSchemaProps): Structural {
  const { type = '' } = schema
  const known = plain.get(type)
  const isPlain = isPlainSchema(schema)
  if (isPlain && known !== undefined) return known
  const node = createNode(schema, type)
  if (isPlain) plain.set(type, node)
  return node
}

const prose: ReadonlySet<string> = new Set(['type', 'description', 'title', 'example', 'externalDocs'])
const scalars: ReadonlySet<string> = new Set(['string', 'integer', 'number', 'boolean'])

function isPlainSchema(schema: JSONSchemaProps): boolean {
  if (!scalars.has(schema.type ?? '')) return false
  for (const name in schema) if (!prose.has(name)) return false
  return true
}

function createNode(schema: JSONSchemaProps, type: string): Structural {
  const { items, additionalProperties } = schema
  const node: { -readonly [Name in keyof Structural]: Structural[Name] } = {
    type,
    nullable: schema.nullable ?? false,
    preserveUnknown: schema['x-kubernetes-preserve-unknown-fields'] ?? false,
    embedded: schema['x-kubernetes-embedded-resource'] ?? false,
    intOrString: schema['x-kubernetes-int-or-string'] ?? false,
    properties: propertiesOf(schema),
    additional: typeof additionalProperties === 'object' ? structuralOf(additionalProperties) : additionalProperties,
    items: items === undefined || Array.isArray(items) ? undefined : structuralOf(items),
    default: (schema.default ?? undefined) as JsonValue | undefined,
    listType: schema['x-kubernetes-list-type'] as ListType | undefined,
    mapKeys: schema['x-kubernetes-list-map-keys'] ?? NO_KEYS,
    mapType: schema['x-kubernetes-map-type'] as Structural['mapType'],
    rules: schema['x-kubernetes-validations'] ?? NO_KEYS,
    values: valueRulesOf(schema),
    has: 0,
  }
  node.has = contentsOf(node)
  return node
}

function propertiesOf({ properties }: JSONSchemaProps): ReadonlyMap<string, Structural> {
  if (properties === undefined) return NONE
  const out = new Map<string, Structural>()
  for (const name of Object.keys(properties)) out.set(name, structuralOf(properties[name] as JSONSchemaProps))
  return out
}

function contentsOf(node: Structural): Contents {
  let has = node.default === undefined ? 0 : HAS_DEFAULTS
  if (node.embedded) has |= HAS_EMBEDDED
  if (node.listType === 'set' || node.listType === 'map') has |= HAS_UNIQUE
  if (node.rules.length > 0) has |= HAS_RULES
  for (const property of node.properties.values()) has |= property.has
  if (typeof node.additional === 'object') has |= node.additional.has
  return has | (node.items?.has ?? 0)
}

const keywords =
  'format pattern enum required multipleOf maximum exclusiveMaximum minimum exclusiveMinimum maxLength minLength maxItems minItems maxProperties minProperties'.split(
    ' ',
  ) as (keyof ValueRules & keyof JSONSchemaProps)[]
const conditions = ['allOf', 'oneOf', 'anyOf'] as const

function valueRulesOf(schema: JSONSchemaProps): ValueRules | undefined {
  const rules: Record<string, unknown> = {}
  for (const name of keywords) if (isSet(schema[name])) rules[name] = schema[name]
  for (const name of conditions) if (isSet(schema[name])) rules[name] = schema[name]?.map(structuralOf)
  if (schema.not !== undefined) rules['not'] = structuralOf(schema.not)
  for (const _ in rules) return rules
  return undefined
}

function isSet(value: unknown): boolean {
  return value !== undefined && value !== '' && value !== false && !(Array.isArray(value) && value.length === 0)
}

/** The schema of a member: that of its property, or of additional properties. */
export function memberSchema(schema: Structural, name: string): Structural | undefined {
  const property = schema.properties.get(name)
  if (property !== undefined) return property
  return typeof schema.additional === 'object' ? schema.additional : undefined
}
