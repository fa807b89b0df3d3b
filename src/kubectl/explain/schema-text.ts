/** Formats the output of `kubectl explain` from OpenAPI v3. */
import { goQuote } from '#lib/go/text.ts'

import { KubectlError } from '../errors.ts'
import { goShow, sortedKeys } from '../templates/go-value.ts'
import type { GroupVersionKind, Schema } from './schema.ts'
import { indent, wrapWords } from './word-wrap.ts'

export interface OpenApiDocument {
  readonly paths?: Readonly<
    Record<string, Readonly<Record<string, { readonly 'x-kubernetes-group-version-kind'?: GroupVersionKind }>>>
  >
  readonly components?: { readonly schemas?: Readonly<Record<string, Schema>> }
}

export interface ExplainRequest {
  readonly document: OpenApiDocument
  readonly resource: { readonly group: string; readonly version: string; readonly plural: string }
  readonly path: readonly string[]
  readonly recursive: boolean
}

/** Throws KubectlError if the kind or field does not exist; for a field, after printing the heading. */
export function explainTo(
  write: (text: string) => void,
  { document, resource, path, recursive }: ExplainRequest,
): void {
  const kind = kindAt(document, resource)
  const { group, version, plural } = resource
  if (kind === undefined) {
    throw new KubectlError(`error: GVR (${group}/${version}, Resource=${plural}) not found in OpenAPI schema`)
  }
  const explainer = new Explainer(document, recursive)
  const schema = explainer.schemaOf(kind)
  if (schema === undefined) throw new KubectlError(`error: GVK ${goShow({ ...kind })} not found in OpenAPI schema`)
  write(kind.group === '' ? '' : `GROUP:      ${kind.group}\n`)
  write(`KIND:       ${kind.kind}\nVERSION:    ${kind.version}\n\n`)
  const text = explainer.output(schema, path, new Set())
  if (text === '') throw new KubectlError(`error: field ${goQuote(path.at(-1) ?? '')} does not exist`)
  write(`${text}\n`)
}

const METHODS = ['get', 'post', 'put', 'patch', 'delete']

/** The kind that the path serves. */
function kindAt({ paths = {} }: OpenApiDocument, resource: ExplainRequest['resource']): GroupVersionKind | undefined {
  const { group, version, plural } = resource
  const root = `${group === '' ? '/api' : `/apis/${group}`}/${version}`
  const candidates = [`${root}/${plural}`, `${root}/namespaces/{namespace}/${plural}`]
  for (const candidate of candidates.flatMap((path) => [path, `${path}/{name}`])) {
    const found = METHODS.map((method) => paths[candidate]?.[method]?.['x-kubernetes-group-version-kind'])
    const kind = found.find((one) => one !== undefined)
    if (kind !== undefined) return kind
  }
  return undefined
}

const REF_PREFIX = '#/components/schemas/'

class Explainer {
  readonly #schemas: Readonly<Record<string, Schema>>
  readonly #recursive: boolean

  constructor({ components }: OpenApiDocument, recursive: boolean) {
    this.#schemas = components?.schemas ?? {}
    this.#recursive = recursive
  }

  schemaOf({ group, version, kind }: GroupVersionKind): Schema | undefined {
    const isIt = (one: GroupVersionKind): boolean => one.group === group && one.version === version && one.kind === kind
    return sortedKeys(this.#schemas)
      .map((name) => this.#schemas[name] as Schema)
      .find((schema) => schema['x-kubernetes-group-version-kind']?.some(isIt))
  }

  /** Empty if the path does not exist. */
  output(schema: Schema, path: readonly string[], seen: ReadonlySet<string>): string {
    const resolved = this.#resolved(schema)
    const [field, ...rest] = path
    if (field === undefined) return this.#summary(resolved)
    if (schema.$ref !== undefined && seen.has(schema.$ref)) return ''
    const next = new Set([...seen, schema.$ref ?? ''])
    const property = resolved.properties?.[field]
    if (property !== undefined) {
      const heading = rest.length === 0 ? this.#heading(field, property) : ''
      return heading + this.output(property, rest, new Set())
    }
    if (resolved.items !== undefined) return this.output(resolved.items, path, next)
    const values = valuesOf(resolved)
    if (values !== undefined) return this.output(values, path, next)
    for (const alternative of resolved.allOf ?? []) {
      const text = this.output(alternative, path, next)
      if (text !== '') return text
    }
    return ''
  }

  #resolved(schema: Schema): Schema {
    const name = schema.$ref?.startsWith(REF_PREFIX) ? schema.$ref.slice(REF_PREFIX.length) : undefined
    return (name === undefined ? undefined : this.#schemas[name]) ?? schema
  }

  #heading(field: string, schema: Schema): string {
    const values = schema.enum ?? []
    const list = values.length === 0 ? '' : `ENUM:${values.map((value) => `\n    ${enumText(value)}`).join('')}`
    return `FIELD: ${field} <${this.#type(schema)}>\n${list}\n\n`
  }

  #summary(schema: Schema): string {
    const description = this.#description(schema) || '<empty>'
    const docs = docsText(schema, 76, 0)
    const fields = this.#fields(schema, 1, new Set())
    return (
      `DESCRIPTION:\n${indent(wrapWords(description, 76), 4)}\n` +
      (docs === '' ? '' : `\n${docs}`) +
      (fields === '' ? '' : `FIELDS:\n${fields}`)
    )
  }

  /** The descriptions of the schema and of its parts, each as a paragraph. */
  #description(schema: Schema): string {
    const resolved = this.#resolved(schema)
    const own = (resolved.description ?? '') === '' ? '' : `${resolved.description}\n`
    const parts = [...(resolved.allOf ?? []), resolved.items, valuesOf(resolved)]
    return own + parts.map((part) => (part === undefined ? '' : this.#description(part))).join('')
  }

  #fields(schema: Schema, level: number, seen: ReadonlySet<string>): string {
    const { $ref: ref = '' } = schema
    if (ref !== '' && seen.has(ref)) return ''
    const next = new Set([...seen, ref])
    const resolved = this.#resolved(schema)
    const own = sortedKeys(resolved.properties ?? {}).map((name) => {
      const property = (resolved.properties as Record<string, Schema>)[name] as Schema
      const below = this.#recursive ? this.#fields(property, level + 1, next) : ''
      return this.#field(name, property, { level, required: resolved.required?.includes(name) ?? false }) + below
    })
    const parts = [...(resolved.allOf ?? []), resolved.items, valuesOf(resolved)]
    return [...own, ...parts.map((part) => (part === undefined ? '' : this.#fields(part, level, next)))].join('')
  }

  #field(name: string, schema: Schema, { level, required }: { level: number; required: boolean }): string {
    const margin = level * 2
    const values = schema.enum ?? []
    const shown = values.slice(0, SHOWN_VALUES).map(enumText).join(', ')
    const more = values.length > SHOWN_VALUES ? ', ....' : ''
    const list = values.length === 0 ? '' : `\n${' '.repeat(margin)}enum: ${shown}${more}`
    const line = `${indent(name, margin)}\t<${this.#type(schema)}>${required ? ' -required-' : ''}${list}\n`
    if (this.#recursive) return line
    const description = (schema.description ?? '') || '<no description>'
    const docs = docsText(schema, 76 - margin, margin + 2)
    return `${line}${indent(wrapWords(description, 78 - margin), margin + 2)}\n${docs === '' ? '' : `\n${docs}`}\n`
  }

  /** `string`, `[]Container`, `map[string]string`. */
  #type(schema: Schema): string {
    if (schema.items !== undefined) return `[]${this.#type(schema.items)}`
    const values = valuesOf(schema)
    if (values !== undefined) return `map[string]${this.#type(values)}`
    const [only, ...others] = schema.allOf ?? []
    if (only !== undefined && others.length === 0 && schema.properties === undefined) return this.#type(only)
    if (schema.$ref !== undefined) return this.#referredType(schema)
    return schema.type === 'object' ? 'Object' : (schema.type ?? 'Object')
  }

  #referredType(schema: Schema): string {
    const resolved = this.#resolved(schema)
    const isObject = resolved === schema || resolved.type === undefined || resolved.type === 'object'
    if (!isObject) return resolved.type ?? 'Object'
    return schema.$ref?.split('/').at(-1)?.split('.').at(-1) || 'Object'
  }
}

const SHOWN_VALUES = 4

function enumText(value: unknown): string {
  return value === '' ? '""' : goShow(value)
}

function valuesOf({ additionalProperties }: Schema): Schema | undefined {
  return typeof additionalProperties === 'object' ? additionalProperties : undefined
}

function docsText({ externalDocs }: Schema, width: number, margin: number): string {
  if (externalDocs === undefined) return ''
  const { description = '', url = '' } = externalDocs
  return [
    `${indent('EXTERNAL DOCS:', margin)}\n`,
    description === '' ? '' : `${indent(wrapWords(description, width), margin + (margin === 0 ? 4 : 2))}\n`,
    url === '' ? '' : `${indent(`URL: ${url}`, margin + (margin === 0 ? 4 : 2))}\n`,
  ].join('')
}
