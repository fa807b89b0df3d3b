/** Finds fields that a kind does not have, values of a wrong type, and required fields that are missing. */
import { resolve, type Schema, type Schemas, typeText } from './schema.ts'

export interface SchemaProblem {
  readonly path: readonly (string | number)[]
  readonly message: string
}

const MAX_PROBLEMS = 50
const MAX_DEPTH = 40

export function lintValue(schemas: Schemas, root: Schema, value: unknown): readonly SchemaProblem[] {
  const problems: SchemaProblem[] = []
  check({ schemas, problems }, root, value, [])
  return problems
}

interface Linting {
  readonly schemas: Schemas
  readonly problems: SchemaProblem[]
}

type Path = readonly (string | number)[]

function check(linting: Linting, schema: Schema | undefined, value: unknown, path: Path): void {
  const { schemas, problems } = linting
  const found = resolve(schemas, schema)
  if (found === undefined || value === null || problems.length >= MAX_PROBLEMS || path.length > MAX_DEPTH) return
  if (!fitsType(found, value)) {
    problems.push({ path, message: `This must be ${typeText(schemas, found)}` })
    return
  }
  if (found.enum !== undefined && !found.enum.includes(value)) {
    problems.push({ path, message: `This must be one of ${found.enum.map(String).join(', ')}` })
  }
  if (Array.isArray(value)) for (const [at, item] of value.entries()) check(linting, found.items, item, [...path, at])
  else if (typeof value === 'object') checkMap(linting, found, value, path)
}

function checkMap(linting: Linting, schema: Schema, value: object, path: Path): void {
  const { properties, additionalProperties, required = [] } = schema
  const isClosed =
    properties !== undefined &&
    additionalProperties === undefined &&
    schema['x-kubernetes-preserve-unknown-fields'] !== true
  for (const [name, child] of Object.entries(value)) {
    const isKnown = properties !== undefined && Object.hasOwn(properties, name)
    if (isKnown) check(linting, properties[name], child, [...path, name])
    else if (isClosed) linting.problems.push({ path: [...path, name], message: `There is no field "${name}" here` })
    else if (typeof additionalProperties === 'object') check(linting, additionalProperties, child, [...path, name])
  }
  // The server fills in required fields of status and metadata.
  const missing =
    path[0] === 'metadata' || path[0] === 'status' ? [] : required.filter((name) => !Object.hasOwn(value, name))
  for (const name of missing) {
    const isDefaulted = resolve(linting.schemas, properties?.[name])?.default !== undefined
    if (!isDefaulted) linting.problems.push({ path, message: `The field "${name}" is missing` })
  }
}

function fitsType(schema: Schema, value: unknown): boolean {
  if (schema['x-kubernetes-int-or-string'] === true || schema.format === 'int-or-string') {
    return typeof value === 'string' || typeof value === 'number'
  }
  switch (schema.type) {
    case 'string':
      return typeof value === 'string'
    case 'boolean':
      return typeof value === 'boolean'
    case 'integer':
      return Number.isInteger(value)
    case 'number':
      return typeof value === 'number'
    case 'array':
      return Array.isArray(value)
    case 'object':
      return typeof value === 'object' && !Array.isArray(value)
    default:
      return true
  }
}
