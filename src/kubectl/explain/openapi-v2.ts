/** `kubectl explain` from OpenAPI v2, the older output format. */
import { goQuote } from '#lib/go/text.ts'

import { KubectlError } from '../errors.ts'
import { sortedKeys } from '../templates/go-value.ts'
import type { GroupVersionKind, Schema } from './schema.ts'

export interface OpenApiV2 {
  readonly definitions?: Readonly<Record<string, Schema>>
}

export interface ExplainedV2 {
  readonly document: OpenApiV2
  readonly kind: GroupVersionKind
  readonly path: readonly string[]
  readonly recursive: boolean
}

const WIDTH = 80
const FIELD_INDENT = 3
const DESCRIPTION_INDENT = 5

/** Throws KubectlError if the kind or field does not exist. */
export function explainV2({ document, kind, path, recursive }: ExplainedV2): string {
  const definitions = document.definitions ?? {}
  const isIt = (one: GroupVersionKind): boolean =>
    one.kind === kind.kind && one.group === kind.group && one.version === kind.version
  const schema = Object.values(definitions).find((one) => one['x-kubernetes-group-version-kind']?.some(isIt))
  if (schema === undefined) {
    throw new KubectlError(`couldn't find resource for ${goQuote(`${kind.group}/${kind.version}, Kind=${kind.kind}`)}`)
  }
  const page = new Page(definitions, kind)
  return page.text(page.at(schema, path), path.at(-1) ?? '', recursive)
}

type Form = 'reference' | 'kind' | 'map' | 'array' | 'primitive' | 'arbitrary'

function formOf({ $ref, type, properties }: Schema): Form {
  if ($ref !== undefined) return 'reference'
  if (properties !== undefined) return 'kind'
  if (type === undefined) return 'arbitrary'
  return type === 'object' ? 'map' : type === 'array' ? 'array' : 'primitive'
}

/** The element schema of a list, map or reference. */
class Page {
  readonly #definitions: Readonly<Record<string, Schema>>
  readonly #kind: GroupVersionKind

  constructor(definitions: Readonly<Record<string, Schema>>, kind: GroupVersionKind) {
    this.#definitions = definitions
    this.#kind = kind
  }

  #inner(schema: Schema): Schema {
    const form = formOf(schema)
    if (form === 'reference') return this.#definitions[(schema.$ref ?? '').replace('#/definitions/', '')] ?? {}
    if (form === 'array') return schema.items ?? {}
    const { additionalProperties: values, description } = schema
    // A map of anything uses its own description for its values.
    return typeof values === 'object' ? values : { ...(description !== undefined && { description }) }
  }

  /** The schema at a path of field names. Throws KubectlError. */
  at(from: Schema, path: readonly string[]): Schema {
    let schema = from
    let left = path
    while (left.length > 0) {
      const form = formOf(schema)
      if (form === 'primitive' || form === 'arbitrary') return schema
      if (form !== 'kind') {
        schema = this.#inner(schema)
        continue
      }
      const [field = '', ...rest] = left
      const found = Object.hasOwn(schema.properties ?? {}, field) ? schema.properties?.[field] : undefined
      if (found === undefined) throw new KubectlError(`field ${goQuote(field)} does not exist`)
      schema = found
      left = rest
    }
    return schema
  }

  text(schema: Schema, name: string, recursive: boolean): string {
    const descriptions: string[] = []
    let type = ''
    let at = schema
    for (let form = formOf(at); form === 'reference' || form === 'array' || form === 'map'; form = formOf(at)) {
      descriptions.push(at.description ?? '')
      if (form !== 'reference' && type === '') type = this.#typeName(at)
      at = this.#inner(at)
    }
    const form = formOf(at)
    type ||= this.#typeName(at)
    const { group, version, kind } = this.#kind
    const head = `KIND:     ${kind}\nVERSION:  ${group === '' ? version : `${group}/${version}`}\n\n`
    const description = `DESCRIPTION:\n${describe([...descriptions, at.description ?? ''])}`
    if (form === 'arbitrary') return head + description
    if (form === 'primitive') return `${head}FIELD:    ${name} <${type}>\n\n${description}`
    const resource = name === '' ? '' : `RESOURCE: ${name} <${type}>\n\n`
    const fields = recursive ? this.#fieldsBelow(at, FIELD_INDENT, new Set()) : this.#fields(at)
    return `${head}${resource}${description}\nFIELDS:\n${fields}`
  }

  #typeName(schema: Schema): string {
    const form = formOf(schema)
    if (form === 'kind') return 'Object'
    if (form === 'primitive') return schema.type ?? ''
    if (form === 'arbitrary') return ''
    const inner = this.#typeName(this.#inner(schema))
    return form === 'reference' ? inner : form === 'array' ? `[]${inner}` : `map[string]${inner}`
  }

  #fields({ properties = {}, required = [] }: Schema): string {
    const margin = ' '.repeat(FIELD_INDENT)
    return sortedKeys(properties)
      .map((name) => {
        const schema = properties[name] as Schema
        const mark = required.includes(name) ? ' -required-' : ''
        const lines = wrapped(schema.description ?? '', FIELD_INDENT + 2)
        return `${margin}${name}\t<${this.#typeName(schema)}>${mark}\n${lines}\n`
      })
      .join('')
  }

  /** Prints names, indented by level. `seen` contains the references on the path, to stop recursion. */
  #fieldsBelow(schema: Schema, indent: number, seen: ReadonlySet<string>): string {
    const form = formOf(schema)
    if (form === 'primitive' || form === 'arbitrary') return ''
    if (form !== 'kind') {
      const { $ref = '' } = schema
      if ($ref !== '' && seen.has($ref)) return ''
      return this.#fieldsBelow(this.#inner(schema), indent, $ref === '' ? seen : new Set([...seen, $ref]))
    }
    const { properties = {} } = schema
    return sortedKeys(properties)
      .map((name) => {
        const field = properties[name] as Schema
        const below = this.#fieldsBelow(field, indent + FIELD_INDENT, seen)
        return `${' '.repeat(indent)}${name}\t<${this.#typeName(field)}>\n${below}`
      })
      .join('')
  }
}

/** Paragraphs separated by empty lines. */
function describe(descriptions: readonly string[]): string {
  const texts = descriptions.map((text, at) =>
    text === '' ? '' : `${at === 0 ? '' : '\n'}${wrapped(text, DESCRIPTION_INDENT)}`,
  )
  return texts.join('') || wrapped('<empty>', DESCRIPTION_INDENT)
}

function wrapped(text: string, indent: number): string {
  const margin = ' '.repeat(indent)
  return linesOf(text, WIDTH - indent)
    .map((line) => (line === '' ? '\n' : `${margin}${line}\n`))
    .join('')
}

const CODE = '    '
const BULLET = /^(\d+\.?|-|\*)\s/

/** Wraps words; code, lists, empty lines and lines after a colon stay unchanged. */
export function linesOf(text: string, width: number): string[] {
  const lines: string[] = []
  let line: string[] = []
  let last = ''
  const flush = (): void => {
    if (line.length === 0) return
    lines.push(line.join(' '))
    line = []
    last = ''
  }
  const length = (words: readonly string[]): number => Buffer.byteLength(words.join(' '))
  for (const written of text.split('\n')) {
    const isEmpty = written.trim() === ''
    if (written.startsWith(CODE) || (lines.length > 0 && isEmpty)) {
      flush()
      lines.push(isEmpty && !written.startsWith(CODE) ? '' : written)
      continue
    }
    if (last.endsWith(':') || isEmpty || BULLET.test(written.trim())) flush()
    for (const word of written.split(/\s+/).filter(Boolean)) {
      if (line.length > 0 && length([...line, word]) > width) flush()
      line.push(word)
      last = word
    }
  }
  flush()
  return lines
}
