/** Follows the OpenAPI v3 schema of a kind: the fields that an object may have, their types and descriptions. */

export interface Schema {
  readonly $ref?: string
  readonly type?: string
  readonly format?: string
  readonly description?: string
  readonly properties?: Readonly<Record<string, Schema>>
  readonly additionalProperties?: Schema | boolean
  readonly items?: Schema
  readonly allOf?: readonly Schema[]
  readonly required?: readonly string[]
  readonly enum?: readonly unknown[]
  readonly default?: unknown
  readonly 'x-kubernetes-group-version-kind'?: readonly {
    readonly group: string
    readonly version: string
    readonly kind: string
  }[]
  readonly 'x-kubernetes-list-type'?: string
  readonly 'x-kubernetes-list-map-keys'?: readonly string[]
  readonly 'x-kubernetes-map-type'?: string
  readonly 'x-kubernetes-preserve-unknown-fields'?: boolean
  readonly 'x-kubernetes-int-or-string'?: boolean
}

export type Schemas = Readonly<Record<string, Schema>>

/** The schema of a kind in the document of its group and version. */
export function schemaOfKind(schemas: Schemas, apiVersion: string, kind: string): Schema | undefined {
  const [version = '', group = ''] = apiVersion.split('/').reverse()
  return Object.values(schemas).find((schema) =>
    schema['x-kubernetes-group-version-kind']?.some(
      (one) => one.kind === kind && one.group === group && one.version === version,
    ),
  )
}

const MAX_REFS = 10

/** The schema behind references, with the description of the field that refers to it. */
export function resolve(schemas: Schemas, schema: Schema | undefined): Schema | undefined {
  let found = schema
  for (let refs = 0; found !== undefined && refs < MAX_REFS; refs++) {
    const [only] = found.allOf ?? []
    const ref = found.$ref ?? (found.allOf?.length === 1 ? only?.$ref : undefined)
    if (ref === undefined) return found
    const { $ref: _ref, allOf: _allOf, ...own } = found
    const target: Schema | undefined = schemas[ref.slice(ref.lastIndexOf('/') + 1)]
    found = target && { ...target, ...own }
  }
  return found
}

/** The schema of a part of the object. Undefined: unknown, or any value is valid there. */
export function schemaAt(
  schemas: Schemas,
  root: Schema | undefined,
  path: readonly (string | number)[],
): Schema | undefined {
  let at = resolve(schemas, root)
  for (const step of path) {
    if (at === undefined) return undefined
    at = resolve(schemas, typeof step === 'number' ? at.items : fieldSchema(at, step))
  }
  return at
}

function fieldSchema({ properties = {}, additionalProperties }: Schema, name: string): Schema | undefined {
  if (Object.hasOwn(properties, name)) return properties[name]
  return typeof additionalProperties === 'object' ? additionalProperties : undefined
}

/** `string`, `[]object`, `map of string`, `integer or string`. */
export function typeText(schemas: Schemas, schema: Schema | undefined): string {
  const found = resolve(schemas, schema)
  if (found === undefined) return 'any'
  if (found['x-kubernetes-int-or-string'] === true || found.format === 'int-or-string') return 'integer or string'
  if (found.type === 'array') return `[]${typeText(schemas, found.items)}`
  if (typeof found.additionalProperties === 'object') return `map of ${typeText(schemas, found.additionalProperties)}`
  return found.type ?? 'any'
}
