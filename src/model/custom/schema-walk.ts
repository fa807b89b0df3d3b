/** Iterates over the schemas of a CustomResourceDefinition, including nested schemas. */
import type { CustomResourceDefinitionSpec, JSONSchemaProps } from '#apis/apiextensions/v1.ts'

export type Schema = JSONSchemaProps

/** The schema of list items, if there is one for all. */
export function itemsOf({ items }: Schema): Schema | undefined {
  return Array.isArray(items) ? undefined : items
}

/** The schema of additional properties, if there is one. */
export function additionalOf({ additionalProperties: additional }: Schema): Schema | undefined {
  return typeof additional === 'object' ? additional : undefined
}

/** Keywords of a scalar that no rule concerns. */
const harmless: ReadonlySet<string> = new Set(
  'type description title format example externalDocs enum maximum exclusiveMaximum minimum exclusiveMinimum maxLength minLength multipleOf'.split(
    ' ',
  ),
)
const scalars: ReadonlySet<string> = new Set(['string', 'integer', 'number', 'boolean'])

/** Nine of ten schemas in a definition are plain scalars, and there are thousands: they need no validation. */
export function isPlainScalar(schema: Schema): boolean {
  if (!scalars.has(schema.type ?? '')) return false
  for (const name in schema) if (!harmless.has(name)) return false
  return true
}

/** Properties that need validation. */
export function relevantProperties(properties: Readonly<Record<string, Schema>>): [string, Schema][] {
  return Object.entries(properties).filter(([, property]) => !isPlainScalar(property))
}

const single = ['not', 'items', 'additionalProperties', 'additionalItems'] as const
const lists = ['allOf', 'anyOf', 'oneOf', 'items'] as const
const named = ['properties', 'patternProperties', 'definitions', 'dependencies'] as const

/** True if the predicate holds for a schema or any nested one. */
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
