/** Generates a JSON Schema of cluster.yml for editors, from the table of its keys. */
import type { JsonObject, JsonValue } from '#lib/json/value.ts'

import { CLUSTER } from './cluster-schema.ts'
import type { Field } from './field.ts'

/** Draft 7, which all YAML extensions of editors support. */
export function clusterJsonSchema(): JsonObject {
  return {
    $schema: 'http://json-schema.org/draft-07/schema#',
    title: 'cluster.yml of hyperkube build',
    ...objectSchema(CLUSTER),
  }
}

function objectSchema(members: Readonly<Record<string, Field>>): JsonObject {
  const properties: JsonObject = {}
  for (const [name, field] of Object.entries(members)) {
    const schema = schemaOf(field)
    properties[name] = schema
    for (const alias of field.aliases ?? []) properties[alias] = { ...schema, deprecated: true }
  }
  const required = Object.entries(members).flatMap(([name, field]) => (field.required ? [name] : []))
  return { type: 'object', properties, additionalProperties: false, ...(required.length > 0 ? { required } : {}) }
}

/** Every key may be present and empty, as tools write it. */
function schemaOf(field: Field): JsonObject {
  const { type, ...rest } = kindSchema(field)
  const about: JsonObject = {
    description: field.about,
    ...(field.default === undefined ? {} : { default: plain(field.default) }),
    ...(field.past ? { deprecated: true } : {}),
  }
  if (field.required || type === undefined) return { ...about, ...(type === undefined ? {} : { type }), ...rest }
  const types = [...new Set([...[type].flat(), 'null'])] as JsonValue[]
  return { ...about, type: types, ...rest }
}

function kindSchema(field: Field): JsonObject {
  switch (field.kind) {
    case 'text':
      return field.oneOf ? { enum: [...field.oneOf, '', null] } : { type: ['string', 'number', 'boolean'] }
    case 'whole':
      return { type: ['integer', 'string'], ...limits(field) }
    case 'number':
      return { type: ['number', 'string'], ...limits(field) }
    case 'flag':
      return { type: 'boolean' }
    case 'amount':
      return { type: ['integer', 'string'], pattern: String.raw`^\d+%?$` }
    case 'list':
      return { type: 'array', items: schemaOf(field.of as Field) }
    case 'map':
      return { type: 'object', additionalProperties: schemaOf(field.of as Field) }
    case 'document':
      return { type: 'object' }
    case 'object':
      return objectSchema(field.members ?? {})
  }
}

/** 0 often means unset. */
function limits({ min, max, zeroIsUnset }: Field): JsonObject {
  return {
    ...(min === undefined ? {} : { minimum: zeroIsUnset ? Math.min(min, 0) : min }),
    ...(max === undefined ? {} : { maximum: max }),
  }
}

function plain(value: unknown): JsonValue {
  return JSON.parse(JSON.stringify(value)) as JsonValue
}
