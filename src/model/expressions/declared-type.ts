/** The types that Kubernetes declares for the variables of expressions: objects known by name, with fields of their own. */
import { type CelType, type ObjectField, type ObjectType, STRING } from '#cel/type.ts'

/** An object type whose fields are called in expressions as they are in JSON. */
export function declareObject(name: string, fields: Readonly<Record<string, CelType>>): ObjectType {
  const known = new Map<string, ObjectField>(
    Object.entries(fields).map(([jsonName, type]) => [jsonName, { type, jsonName }]),
  )
  return { kind: 'object', name, field: (name) => known.get(name) }
}

/** The same of fields that all hold text. */
export function declareTexts(name: string, fields: readonly string[]): ObjectType {
  return declareObject(name, Object.fromEntries(fields.map((field) => [field, STRING])))
}
