/** Going through the schemas of a definition: each one holds others in a dozen places. */
import type { CustomResourceDefinitionSpec, JSONSchemaProps } from '#apis/apiextensions/v1.ts'

export type Schema = JSONSchemaProps

/** The schema of a list's items, when there is one for all of them. */
export function itemsOf({ items }: Schema): Schema | undefined {
  return Array.isArray(items) ? undefined : items
}

/** What additional properties must look like, when that is said by a schema. */
export function additionalOf({ additionalProperties: additional }: Schema): Schema | undefined {
  return typeof additional === 'object' ? additional : undefined
}

/** What a scalar may say without any rule being about it. */
const harmless: ReadonlySet<string> = new Set(
  'type description title format example externalDocs enum maximum exclusiveMaximum minimum exclusiveMinimum maxLength minLength multipleOf'.split(
    ' ',
  ),
)
const scalars: ReadonlySet<string> = new Set(['string', 'integer', 'number', 'boolean'])

/** Nine of ten schemas in a definition are such, and there are thousands: nothing can be wrong with one. */
export function isPlainScalar(schema: Schema): boolean {
  if (!scalars.has(schema.type ?? '')) return false
  for (const name in schema) if (!harmless.has(name)) return false
  return true
}

/** The properties about which there is something to say. */
export function telling(properties: Readonly<Record<string, Schema>>): [string, Schema][] {
  return Object.entries(properties).filter(([, property]) => !isPlainScalar(property))
}

const single = ['not', 'items', 'additionalProperties', 'additionalItems'] as const
const lists = ['allOf', 'anyOf', 'oneOf', 'items'] as const
const named = ['properties', 'patternProperties', 'definitions', 'dependencies'] as const

/** Whether it holds of a schema or of any inside it, wherever it stands. */
export function someSchema(schema: Schema, holds: (schema: Schema) => boolean): boolean {
  if (holds(schema)) return true
  if (isPlainScalar(schema)) return false
  const inside = (one: unknown): boolean =>
    typeof one === 'object' && one !== null && !Array.isArray(one) && someSchema(one, holds)
  if (single.some((name) => inside(schema[name]))) return true
  for (const name of lists) {
    const list = schema[name]
    if (Array.isArray(list) && list.some(inside)) return true
  }
  for (const name of named) {
    const members: object = schema[name] ?? {}
    if (Object.values(members).some(inside)) return true
  }
  return false
}

/** The schemas of all versions. */
export function schemasOf({ versions }: CustomResourceDefinitionSpec): Schema[] {
  return (versions ?? []).flatMap(({ schema }) =>
    schema?.openAPIV3Schema === undefined ? [] : [schema.openAPIV3Schema],
  )
}

export function anySchema(spec: CustomResourceDefinitionSpec, holds: (schema: Schema) => boolean): boolean {
  return schemasOf(spec).some((schema) => someSchema(schema, holds))
}
