/** Completion and hover text at a place of a YAML text, from the schema of its kind. */
import { placeAt } from './cursor-path.ts'
import { resolve, type Schema, schemaAt, type Schemas, typeText } from './schema.ts'
import { toYaml } from './yaml-text.ts'

export interface Suggestion {
  readonly label: string
  /** The type. */
  readonly detail: string
  readonly info: string
  /** The text that it puts in. */
  readonly insert: string
}

export interface KindSchema {
  readonly schemas: Schemas
  readonly root: Schema
}

/** The fields or values that may stand at an offset. `from` is the beginning of the typed word. */
export function suggestionsAt(
  { schemas, root }: KindSchema,
  text: string,
  offset: number,
): { readonly from: number; readonly suggestions: readonly Suggestion[] } {
  const place = placeAt(text, offset)
  const from = offset - place.word.length
  if (place.field !== undefined) {
    const schema = schemaAt(schemas, root, [...place.path, place.field])
    return { from, suggestions: valuesOf(schema) }
  }
  const parent = schemaAt(schemas, root, place.path)
  const owner = parent?.type === 'array' ? resolve(schemas, parent.items) : parent
  const dash = parent?.type === 'array' ? '- ' : ''
  const suggestions = Object.entries(owner?.properties ?? {})
    .filter(([name]) => !place.siblings.has(name))
    .map(([name, schema]) =>
      fieldSuggestion(schemas, name, schema, { dash, isRequired: owner?.required?.includes(name) === true }),
    )
  return { from, suggestions }
}

function fieldSuggestion(
  schemas: Schemas,
  name: string,
  schema: Schema,
  { dash, isRequired }: { readonly dash: string; readonly isRequired: boolean },
): Suggestion {
  const found = resolve(schemas, schema)
  const hasFields = found?.type === 'object' || found?.type === 'array' || found?.properties !== undefined
  const type = typeText(schemas, schema)
  return {
    label: name,
    detail: isRequired ? `${type}, required` : type,
    info: schema.description ?? found?.description ?? '',
    insert: `${dash}${onOneLine(name)}:${hasFields ? '' : ' '}`,
  }
}

function valuesOf(schema: Schema | undefined): readonly Suggestion[] {
  const values = schema?.type === 'boolean' ? [true, false] : (schema?.enum ?? [])
  return values.map((value) => ({ label: String(value), detail: '', info: '', insert: onOneLine(value) }))
}

/** Names and values of custom schemas have any characters: a line break in them must not begin another field. */
function onOneLine(value: unknown): string {
  const text = toYaml(value).trimEnd()
  return text.includes('\n') ? JSON.stringify(value) : text
}

/** The description of the field at an offset. */
export function describeAt(
  { schemas, root }: KindSchema,
  text: string,
  offset: number,
): { readonly title: string; readonly text: string } | undefined {
  const place = placeAt(text, offset)
  const name = place.lineField
  if (name === undefined) return undefined
  const schema = schemaAt(schemas, root, [...place.path, name])
  if (schema === undefined) return undefined
  const values = schema.enum === undefined ? '' : `\nOne of: ${schema.enum.map(String).join(', ')}`
  return { title: `${name}: ${typeText(schemas, schema)}`, text: `${schema.description ?? ''}${values}`.trim() }
}
