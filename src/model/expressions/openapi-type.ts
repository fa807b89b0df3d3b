/**
 * The CEL type of a kind, from the OpenAPI document of its version. Fields and references are resolved on first use.
 */
import { BOOL, BYTES, type CelType, DOUBLE, DURATION, DYN, INT, listOf, mapOf, STRING, TIMESTAMP } from '#cel/type.ts'
import type { GroupVersionKind } from '#meta/kind.ts'

import { lazyObject } from './declared-type.ts'

export interface OpenApiSchema {
  readonly type?: string
  readonly format?: string
  readonly $ref?: string
  readonly allOf?: readonly OpenApiSchema[]
  readonly oneOf?: readonly OpenApiSchema[]
  readonly properties?: Readonly<Record<string, OpenApiSchema>>
  readonly additionalProperties?: OpenApiSchema | boolean
  readonly items?: OpenApiSchema
  readonly 'x-kubernetes-int-or-string'?: boolean
  readonly 'x-kubernetes-embedded-resource'?: boolean
  readonly 'x-kubernetes-group-version-kind'?: readonly GroupVersionKind[]
}

export type OpenApiSchemas = Readonly<Record<string, OpenApiSchema>>

/** Undefined for a kind that the document lacks or does not describe. */
export function typeOfKind({ group, version, kind }: GroupVersionKind, schemas: OpenApiSchemas): CelType | undefined {
  const found = Object.entries(schemas).find(([, schema]) =>
    schema['x-kubernetes-group-version-kind']?.some(
      (one) => one.group === group && one.version === version && one.kind === kind,
    ),
  )
  if (found === undefined) return undefined
  const [name, schema] = found
  return typeOf({ schema, path: new Set([name]), schemas }, kind, true)
}

/** A schema, and the references that led to it. */
interface SchemaNode {
  readonly schema: OpenApiSchema
  readonly path: ReadonlySet<string>
  readonly schemas: OpenApiSchemas
}

const PREFIX = '#/components/schemas/'

/** Resolves a reference; one with a default or a description is in `allOf`. */
function resolved(node: SchemaNode, schema: OpenApiSchema): SchemaNode {
  const ref = [schema, ...(schema.allOf ?? [])].find(({ $ref }) => $ref !== undefined)?.$ref?.slice(PREFIX.length)
  if (ref === undefined) return { ...node, schema }
  const target = node.schemas[ref]
  if (target === undefined || node.path.has(ref)) return { ...node, schema: { type: 'object' } }
  return { ...node, schema: target, path: new Set([...node.path, ref]) }
}

const SCALARS: Readonly<Record<string, CelType>> = { boolean: BOOL, number: DOUBLE, integer: INT }
const FORMATS: Readonly<Record<string, CelType>> = {
  byte: BYTES,
  duration: DURATION,
  date: TIMESTAMP,
  'date-time': TIMESTAMP,
}

/** Undefined for values that expressions cannot see. */
function typeOf(
  node: SchemaNode,
  name: string,
  isResource = node.schema['x-kubernetes-embedded-resource'] === true,
): CelType | undefined {
  const { schema } = node
  if (schema['x-kubernetes-int-or-string'] === true) return DYN
  switch (schema.type) {
    case 'array': {
      const element = schema.items && typeOf(resolved(node, schema.items), `${name}.@idx`)
      return element && listOf(element)
    }
    case 'object':
      return objectOf(node, name, isResource)
    case 'string':
      return FORMATS[schema.format ?? ''] ?? STRING
    case undefined:
      // Quantities and int-or-string values are texts in upstream's schemas.
      return schema.oneOf?.some(({ type }) => type === 'string') === true ? STRING : undefined
    default:
      return SCALARS[schema.type]
  }
}

function objectOf(node: SchemaNode, name: string, isResource: boolean): CelType | undefined {
  const { properties = {}, additionalProperties } = node.schema
  if (typeof additionalProperties === 'object') {
    const value = typeOf(resolved(node, additionalProperties), `${name}.@elem`)
    return value && mapOf(STRING, value)
  }
  const all = isResource ? withMetadata(node, properties) : properties
  return lazyObject(name, Object.keys(all), (jsonName, field) => {
    const property = all[jsonName]
    return property && typeOf(resolved(node, property), `${name}.${field}`)
  })
}

const TEXT: OpenApiSchema = { type: 'string' }
const METADATA: OpenApiSchema = { type: 'object', properties: { name: TEXT, generateName: TEXT } }

/** The common fields of objects, if the schema lacks them. */
function withMetadata(
  node: SchemaNode,
  properties: Readonly<Record<string, OpenApiSchema>>,
): Readonly<Record<string, OpenApiSchema>> {
  const { metadata, kind, apiVersion } = properties
  const own = metadata && resolved(node, metadata).schema.properties
  const texts = [kind, apiVersion, own?.['name'], own?.['generateName']]
  if (texts.every((one) => one?.type === 'string')) return properties
  return { ...properties, kind: TEXT, apiVersion: TEXT, metadata: METADATA }
}
