/**
 * Converts the schema of a custom resource to the schema type of built-in kinds (`meta/schema.ts`), for server-side
 * apply. Fields are converted on first use.
 */
import { structFor } from '#apis/schemas.ts'
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

/** For whole objects; `goType` is the name in errors. */
export function schemaOf(schema: Structural, goType: string): StructSchema {
  return lazyStruct(goType, schema, () => fieldsOf(schema, true))
}

/** The common fields of objects come last, so that they override others. */
function fieldsOf({ properties }: Structural, isResource: boolean): Map<string, FieldSchema> {
  const fields = new Map([...properties].map(([name, property]) => [name, fieldOf(name, property)]))
  if (!isResource) return fields
  const any = structFor('core.v1', 'ConfigMap').fields
  for (const name of ['apiVersion', 'kind', 'metadata']) fields.set(name, any.get(name) as FieldSchema)
  return fields
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
  return lazyStruct('object', schema, () => fieldsOf(schema, schema.embedded))
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
