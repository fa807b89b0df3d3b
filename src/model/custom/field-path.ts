/** Parses field paths of custom resources, `.spec.replicas` or `.spec['a.b']`, and resolves them in the schema. */
import type { Structural } from './structural.ts'

export interface FoundField {
  /** The form in errors: `spec.replicas`. */
  readonly path: string
  /** The first segment. */
  readonly root: string
  /** Absent for an arbitrary additional property. */
  readonly schema: Structural | undefined
}

/** The schema at the path, or the error. */
export function findField(text: string, schema: Structural, allowBrackets = true): FoundField | string {
  const tokens = text.match(/'(?:\\[^]|[^'\\])*'|[.[\]]|[^.[\]']+|'/g) ?? []
  let found: FoundField = { path: '', root: '', schema }
  for (let at = 0; at < tokens.length; at++) {
    const opener = tokens[at] as string
    if (opener !== '.' && opener !== '[') return `expected [ or . but got: ${opener}`
    if (opener === '[' && !allowBrackets) return 'array notation is not allowed'
    const token = tokens[++at]
    if (token === undefined) return 'unexpected end of JSON path'
    const name = opener === '.' ? { text: token } : unquoted(token)
    if (typeof name === 'string') return name
    const next = step(found, name.text)
    if (typeof next === 'string') return next
    found = next
    if (opener === '.') continue
    const closer = tokens[++at]
    if (closer === undefined) return 'unexpected end of JSON path'
    if (closer !== ']') return `expected ] but got ${closer}`
  }
  return found
}

function step({ path, root, schema }: FoundField, name: string): FoundField | string {
  if (schema === undefined) return 'does not refer to a valid field'
  const { properties, additional } = schema
  if (properties.size > 0) {
    if (!properties.has(name)) return 'does not refer to a valid field'
    return { path: path === '' ? name : `${path}.${name}`, root: root || name, schema: properties.get(name) }
  }
  if (additional === undefined) return 'does not refer to a valid field'
  const values = typeof additional === 'object' ? additional : undefined
  return { path: `${path}[${name}]`, root: root || name, schema: values }
}

const escapes = new Map([
  ['a', '\u0007'],
  ['b', '\b'],
  ['f', '\f'],
  ['n', '\n'],
  ['r', '\r'],
  ['t', '\t'],
  ['v', '\v'],
  ["'", "'"],
  ['\\', '\\'],
])

function unquoted(token: string): { readonly text: string } | string {
  if (!/^'[^]*'$/.test(token) || token.length < 2) return `expected single quoted string but got ${token}`
  const inner = token.slice(1, -1)
  const bad = [...inner.matchAll(/\\([^])/g)].find(([, char = '']) => !escapes.has(char))
  if (bad !== undefined) return `invalid string literal: invalid escape char ${bad[0]}`
  return { text: inner.replaceAll(/\\([^])/g, (_, char: string) => escapes.get(char) ?? '') }
}
