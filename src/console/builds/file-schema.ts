/** The schema of cluster files for the editor: completion, descriptions, checks, and the server's words at their lines. */
import type { RequestError } from '../api/request.ts'
import { parseFieldPath } from '../editor/field-path.ts'
import { lintValue } from '../editor/lint-schema.ts'
import type { Schema } from '../editor/schema.ts'
import { parseDocuments, type Problem } from '../editor/yaml-text.ts'

/** The part of JSON Schema that the server uses. */
export interface JsonSchema {
  readonly type?: string | readonly string[]
  readonly description?: string
  readonly properties?: Readonly<Record<string, JsonSchema>>
  readonly additionalProperties?: JsonSchema | boolean
  readonly items?: JsonSchema
  readonly required?: readonly string[]
  readonly enum?: readonly unknown[]
  readonly default?: unknown
  readonly deprecated?: boolean
}

/** In the form that the editor reads. Every key of a cluster file may be empty, so null is no type. */
export function editorSchema(schema: JsonSchema): Schema {
  const { type, description = '', properties, additionalProperties, items, required } = schema
  const words = schema.deprecated === true ? `Deprecated: ${description}` : description
  const values = schema.enum?.filter((value) => value !== null && value !== '')
  return {
    ...typeOf(type),
    ...(words !== '' && { description: words }),
    ...(properties !== undefined && { properties: mapValues(properties, editorSchema) }),
    ...(typeof additionalProperties === 'object' && { additionalProperties: editorSchema(additionalProperties) }),
    ...(items !== undefined && { items: editorSchema(items) }),
    ...(required !== undefined && { required }),
    ...(values !== undefined && { enum: values }),
    ...(schema.default !== undefined && { default: schema.default }),
  }
}

function typeOf(type: JsonSchema['type']): Pick<Schema, 'type' | 'x-kubernetes-int-or-string'> {
  const types = [type ?? []].flat().filter((one) => one !== 'null')
  const [first] = types
  if (types.length === 1 && first !== undefined) return { type: first }
  return types.join() === 'integer,string' ? { 'x-kubernetes-int-or-string': true } : {}
}

function mapValues<A, B>(record: Readonly<Record<string, A>>, change: (value: A) => B): Readonly<Record<string, B>> {
  return Object.fromEntries(Object.entries(record).map(([key, value]) => [key, change(value)]))
}

/** The problems of a cluster file that its schema shows. */
export function fileProblems(text: string, root: Schema | undefined): readonly Problem[] {
  const [document] = parseDocuments(text)
  if (document === undefined) return []
  if (document.object === undefined || root === undefined) return document.problems
  // Objects of Kubernetes have metadata, which the reader adds.
  const { metadata: _, ...file } = document.object
  return lintValue({}, root, file).map(({ path, message }) => ({ message, ...document.rangeOf(path) }))
}

/** The faults that the server found, at the fields that they name. */
export function faultsOf({ status }: RequestError, text: string): readonly Problem[] {
  const [document] = parseDocuments(text)
  return (status.details?.causes ?? []).map(({ field = '', message = '' }) => ({
    message: wordsOf(message),
    ...(document?.rangeOf(parseFieldPath(field.replace(/^file\.?/, ''))) ?? { from: 0, to: 0 }),
  }))
}

/** Without the words that every fault has. */
export function wordsOf(message: string): string {
  return message.replace(/^(?:Invalid value|Forbidden): /, '')
}
