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

/** The schemas directly inside, wherever they stand. */
function childrenOf(schema: Schema): Schema[] {
  const { items, not, additionalItems, dependencies = {} } = schema
  const alone = [not, additionalOf(schema), typeof additionalItems === 'object' ? additionalItems : undefined]
  return [
    ...(Array.isArray(items) ? items : items === undefined ? [] : [items]),
    ...(['allOf', 'anyOf', 'oneOf'] as const).flatMap((name) => schema[name] ?? []),
    ...(['properties', 'patternProperties', 'definitions'] as const).flatMap((name) =>
      Object.values(schema[name] ?? {}),
    ),
    ...Object.values(dependencies).flatMap((one) => (Array.isArray(one) ? [] : [one])),
    ...alone.filter((one) => one !== undefined),
  ]
}

/** Whether it holds of a schema or of any inside it. */
export function someSchema(schema: Schema, holds: (schema: Schema) => boolean): boolean {
  return holds(schema) || childrenOf(schema).some((one) => someSchema(one, holds))
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
