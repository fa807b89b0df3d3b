/**
 * The schema of a custom resource in the form that all kinds have (`meta/schema.ts`), for server-side apply and for the
 * fields that every object has. The rest of an object is read as it comes: what is wrong with it is said by validation.
 * Fields are made when they are first asked for: most definitions of a cluster are never written to.
 */
import { structFor } from '#apis/schemas.ts'
import { compareText } from '#lib/go-text.ts'
import type { FieldSchema, ScalarType, Schema, StructSchema } from '#meta/schema.ts'

import type { Structural } from './structural.ts'

const UNTYPED: Schema = { type: 'any', goType: 'interface {}', deduced: true }

const scalars: Readonly<Record<string, Schema>> = {
  string: scalar('string', 'string'),
  integer: scalar('int64', 'int64'),
  number: scalar('float64', 'float64'),
  boolean: scalar('boolean', 'bool'),
}

const INT_OR_STRING = scalar('int-or-string', 'intstr.IntOrString')

function scalar(type: ScalarType, goType: string): Schema {
  return { type, goType }
}

/** Of whole objects; `goType` is the name that errors show. All fields stand in order, as in the maps they are upstream. */
export function schemaOf(schema: Structural, goType: string): StructSchema {
  return lazyStruct(goType, schema, () => {
    const own = [...schema.properties].map(([name, property]) => ({ ...fieldOf(name, property), untyped: true }))
    return sortedFields([...own, ...metaFields()])
  })
}

/** What every object has, as the built-in kinds have it. They come last, so that nothing else counts. */
function metaFields(): FieldSchema[] {
  const { fields } = structFor('core.v1', 'ConfigMap')
  const named = ['apiVersion', 'kind', 'metadata'].map((name) => fields.get(name) as FieldSchema)
  return named.map((field) => ({ ...field, schema: sortedSchema(field.schema) }))
}

function sortedFields(fields: readonly FieldSchema[]): Map<string, FieldSchema> {
  const byName = new Map(fields.map((field) => [field.name, field]))
  return new Map([...byName].sort(([a], [b]) => compareText(a, b)))
}

/** Metadata holds no structs that hold themselves. */
const sorted = new WeakMap<Schema, Schema>()

function sortedSchema(schema: Schema): Schema {
  if (schema.type === 'list') return { ...schema, items: sortedSchema(schema.items) }
  if (schema.type !== 'struct') return schema
  const known = sorted.get(schema)
  if (known !== undefined) return known
  const { protobuf: _, ...struct } = schema
  const inner = [...schema.fields.values()].map((field) => ({ ...field, schema: sortedSchema(field.schema) }))
  const made: Schema = { ...struct, fields: sortedFields(inner) }
  sorted.set(schema, made)
  return made
}

function fieldOf(name: string, schema: Structural): FieldSchema {
  const field = { name, schema: typeOf(schema), required: false, pointer: true, omitEmpty: true }
  return schema.default === undefined ? field : { ...field, default: schema.default }
}

function typeOf(schema: Structural): Schema {
  if (schema.intOrString) return INT_OR_STRING
  switch (schema.type) {
    case 'array':
      return listOf(schema)
    case 'object':
      return objectOf(schema)
    default:
      return scalars[schema.type] ?? UNTYPED
  }
}

function listOf({ items, listType, mapKeys }: Structural): Schema {
  return {
    type: 'list',
    items: items === undefined ? UNTYPED : typeOf(items),
    pointerItems: true,
    ...(listType === undefined ? {} : { listType, mapKeys }),
  }
}

function objectOf(schema: Structural): Schema {
  const { additional, mapType = 'granular' } = schema
  if (additional !== undefined) {
    return { type: 'map', values: typeof additional === 'object' ? typeOf(additional) : UNTYPED, mapType }
  }
  return lazyStruct('object', schema, () => {
    const own = [...schema.properties].map(([name, property]) => fieldOf(name, property))
    return sortedFields(schema.embedded ? [...own, ...metaFields()] : own)
  })
}

function lazyStruct(
  goType: string,
  { mapType = 'granular', preserveUnknown }: Structural,
  make: () => StructSchema['fields'],
): StructSchema {
  let fields: StructSchema['fields'] | undefined
  return {
    type: 'struct',
    goType,
    mapType,
    preserveUnknown,
    get fields() {
      return (fields ??= make())
    },
  }
}
