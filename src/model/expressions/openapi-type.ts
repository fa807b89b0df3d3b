/**
 * What expressions know of a kind from the OpenAPI document of its version: types alone, without sizes. Fields and
 * references are followed when an expression uses them. A schema that comes round to itself ends as an empty object there.
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

/** Undefined for a kind that the document does not have, or says nothing of. */
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
interface Place {
  readonly schema: OpenApiSchema
  readonly path: ReadonlySet<string>
  readonly schemas: OpenApiSchemas
}

const PREFIX = '#/components/schemas/'

/** Where a reference leads; one with a default or a description stands in `allOf`. */
function resolved(place: Place, schema: OpenApiSchema): Place {
  const ref = [schema, ...(schema.allOf ?? [])].find(({ $ref }) => $ref !== undefined)?.$ref?.slice(PREFIX.length)
  if (ref === undefined) return { ...place, schema }
  const target = place.schemas[ref]
  if (target === undefined || place.path.has(ref)) return { ...place, schema: { type: 'object' } }
  return { ...place, schema: target, path: new Set([...place.path, ref]) }
}

const SCALARS: Readonly<Record<string, CelType>> = { boolean: BOOL, number: DOUBLE, integer: INT }
const FORMATS: Readonly<Record<string, CelType>> = {
  byte: BYTES,
  duration: DURATION,
  date: TIMESTAMP,
  'date-time': TIMESTAMP,
}

/** Undefined for what expressions cannot see. */
function typeOf(
  place: Place,
  name: string,
  isResource = place.schema['x-kubernetes-embedded-resource'] === true,
): CelType | undefined {
  const { schema } = place
  if (schema['x-kubernetes-int-or-string'] === true) return DYN
  switch (schema.type) {
    case 'array': {
      const element = schema.items && typeOf(resolved(place, schema.items), `${name}.@idx`)
      return element && listOf(element)
    }
    case 'object':
      return objectOf(place, name, isResource)
    case 'string':
      return FORMATS[schema.format ?? ''] ?? STRING
    case undefined:
      // Built-in amounts and numbers that may be texts: to upstream's own schemas they are texts.
      return schema.oneOf?.some(({ type }) => type === 'string') === true ? STRING : undefined
    default:
      return SCALARS[schema.type]
  }
}

function objectOf(place: Place, name: string, isResource: boolean): CelType | undefined {
  const { properties = {}, additionalProperties } = place.schema
  if (typeof additionalProperties === 'object') {
    const value = typeOf(resolved(place, additionalProperties), `${name}.@elem`)
    return value && mapOf(STRING, value)
  }
  const all = isResource ? withMetadata(place, properties) : properties
  return lazyObject(name, Object.keys(all), (jsonName, field) => {
    const property = all[jsonName]
    return property && typeOf(resolved(place, property), `${name}.${field}`)
  })
}

const TEXT: OpenApiSchema = { type: 'string' }
const METADATA: OpenApiSchema = { type: 'object', properties: { name: TEXT, generateName: TEXT } }

/** What every object has, where its schema does not say so. */
function withMetadata(
  place: Place,
  properties: Readonly<Record<string, OpenApiSchema>>,
): Readonly<Record<string, OpenApiSchema>> {
  const { metadata, kind, apiVersion } = properties
  const own = metadata && resolved(place, metadata).schema.properties
  const texts = [kind, apiVersion, own?.['name'], own?.['generateName']]
  if (texts.every((one) => one?.type === 'string')) return properties
  return { ...properties, kind: TEXT, apiVersion: TEXT, metadata: METADATA }
}
