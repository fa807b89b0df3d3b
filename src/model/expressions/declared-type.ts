/** Types that Kubernetes declares for variables of expressions: named objects with fields. */
import { escapeName } from '#cel/syntax/names.ts'
import { type CelType, type ObjectField, type ObjectType, STRING } from '#cel/type.ts'

/** An object type with the field names of JSON. */
export function declareObject(name: string, fields: Readonly<Record<string, CelType>>): ObjectType {
  const known = new Map<string, ObjectField>(
    Object.entries(fields).map(([jsonName, type]) => [jsonName, { type, jsonName }]),
  )
  return { kind: 'object', name, field: (name) => known.get(name) }
}

/** The same, with text fields only. */
export function declareTexts(name: string, fields: readonly string[]): ObjectType {
  return declareObject(name, Object.fromEntries(fields.map((field) => [field, STRING])))
}

/** An object type whose fields are created on first use; a field without a type does not exist. */
export function lazyObject(
  name: string,
  jsonNames: Iterable<string>,
  typeOf: (jsonName: string, field: string) => CelType | undefined,
): ObjectType {
  const known = new Map<string, ObjectField | undefined>()
  const names = new Map<string, string>()
  for (const jsonName of jsonNames) {
    const escaped = escapeName(jsonName)
    if (escaped === undefined) continue
    names.set(escaped, jsonName)
    // Reserved words may also be written unescaped.
    if (escaped === `__${jsonName}__`) names.set(jsonName, jsonName)
  }
  const find = (field: string): ObjectField | undefined => {
    const jsonName = names.get(field)
    const type = jsonName === undefined ? undefined : typeOf(jsonName, field)
    return type && { type, jsonName: jsonName ?? '' }
  }
  return {
    kind: 'object',
    name,
    field(field) {
      if (!known.has(field)) known.set(field, find(field))
      return known.get(field)
    },
  }
}
