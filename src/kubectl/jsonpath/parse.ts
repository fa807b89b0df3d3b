/**
 * Parses kubectl's JSONPath: text and actions in braces. An action has paths, numbers, quoted text, `range` and `end`.
 * Syntax and error texts are client-go's.
 */
import { unquoteGo } from '../templates/literal.ts'

/** The beginning, end or step of a slice. */
export interface Bound {
  readonly value: number
  readonly known: boolean
  /** An implicit end: one more than the beginning. */
  readonly derived?: boolean
}

export type Node =
  | { readonly type: 'text'; readonly text: string }
  | { readonly type: 'list'; readonly nodes: Node[] }
  | { readonly type: 'field'; readonly name: string }
  | { readonly type: 'array'; readonly bounds: readonly [Bound, Bound, Bound] }
  | { readonly type: 'filter'; readonly left: ListNode; readonly operator: string; readonly right: ListNode }
  | { readonly type: 'number'; readonly value: number | bigint }
  | { readonly type: 'bool'; readonly value: boolean }
  | { readonly type: 'wildcard' }
  | { readonly type: 'recursive' }
  | { readonly type: 'union'; readonly lists: readonly ListNode[] }
  | { readonly type: 'identifier'; readonly name: string }

export type ListNode = Extract<Node, { type: 'list' }>

/** Upstream's error text for a template that cannot be parsed or evaluated. */
export class JsonPathError extends Error {}

/** Throws a JsonPathError. */
export function parseTemplate(text: string): ListNode {
  const root: ListNode = { type: 'list', nodes: [] }
  const reader = new Reader(text)
  while (!reader.isAtEnd) {
    const plain = reader.take(/[^{]+/y)
    if (plain !== undefined) root.nodes.push({ type: 'text', text: plain })
    if (reader.take(/\{/y) === undefined) continue
    const action: ListNode = { type: 'list', nodes: [] }
    root.nodes.push(action)
    readAction(reader, action.nodes)
  }
  return root
}

/** Parses the inside of braces. Like upstream, a nested brace ends the action and drops the rest. */
function parseAction(text: string): ListNode {
  return parseTemplate(`{${text}}`).nodes[0] as ListNode
}

class Reader {
  readonly text: string
  at = 0

  constructor(text: string) {
    this.text = text
  }

  get isAtEnd(): boolean {
    return this.at >= this.text.length
  }

  /** Reads the next character; empty at the end. */
  next(): string {
    const point = this.text.codePointAt(this.at)
    if (point === undefined) return ''
    const char = String.fromCodePoint(point)
    this.at += char.length
    return char
  }

  /** Reads the match of a sticky expression at this position. */
  take(pattern: RegExp): string | undefined {
    pattern.lastIndex = this.at
    const found = pattern.exec(this.text)?.[0]
    this.at += found?.length ?? 0
    return found
  }
}

const RIGHT_BRACE = /\}/y
const SKIPPED = /[ @$]/y
const FILTER_START = /\[\?\(/y
const RECURSIVE = /\.\./y
const WORD_START = /(?=[_\p{L}\p{Nd}])/uy
const NUMBER = /(?=[+\-\p{Nd}])[+-]?[.\p{Nd}]*/uy
/** Reads up to the end of a name; a backslash escapes a character. */
const FIELD = /(?:\\[^]?|[^ \t\r\n.,[\]$@{}\\])*/uy
const IDENTIFIER = /[^ \t\r\n.,[\]$@{}]*/uy

function readAction(reader: Reader, nodes: Node[]): void {
  while (reader.take(RIGHT_BRACE) === undefined) readStep(reader, nodes)
}

/** Reads one part of an action. The order of the checks is upstream's. */
function readStep(reader: Reader, nodes: Node[]): void {
  if (reader.take(FILTER_START) !== undefined) return readFilter(reader, nodes)
  if (reader.take(RECURSIVE) !== undefined) return readRecursive(reader, nodes)
  if (reader.take(SKIPPED) !== undefined) return
  if (reader.take(/\[/y) !== undefined) return readArray(reader, nodes)
  if (reader.take(/\./y) !== undefined) return readField(reader, nodes)
  const number = reader.take(NUMBER)
  if (number !== undefined) return void nodes.push({ type: 'number', value: numberOf(number) })
  if (reader.take(WORD_START) !== undefined) return readIdentifier(reader, nodes)
  readQuoted(reader, nodes)
}

function readQuoted(reader: Reader, nodes: Node[]): void {
  const start = reader.at
  const quote = reader.next()
  if (quote === '' || quote === '\r' || quote === '\n') throw new JsonPathError('unclosed action')
  if (quote !== '"' && quote !== "'") throw new JsonPathError(`unrecognized character in action: ${unicodeName(quote)}`)
  for (;;) {
    const char = reader.next()
    if (char === '' || char === '\n') throw new JsonPathError('unterminated quoted string')
    if (char === quote && reader.text[reader.at - 2] !== '\\') break
  }
  const written = reader.text.slice(start, reader.at)
  nodes.push({ type: 'text', text: unquoted(written) })
}

function readIdentifier(reader: Reader, nodes: Node[]): void {
  const name = reader.take(IDENTIFIER) ?? ''
  const isBool = name === 'true' || name === 'false'
  nodes.push(isBool ? { type: 'bool', value: name === 'true' } : { type: 'identifier', name })
}

function readField(reader: Reader, nodes: Node[]): void {
  const name = reader.take(FIELD) ?? ''
  nodes.push(name === '*' ? { type: 'wildcard' } : { type: 'field', name: name.replaceAll('\\', '') })
}

function readRecursive(reader: Reader, nodes: Node[]): void {
  if (nodes.at(-1)?.type === 'recursive') throw new JsonPathError('invalid multiple recursive descent')
  nodes.push({ type: 'recursive' })
  if (reader.take(WORD_START) !== undefined) readField(reader, nodes)
}

function numberOf(text: string): number | bigint {
  if (/^[+-]?\d+$/.test(text)) {
    const value = BigInt(text.replace(/^\+/, ''))
    return BigInt.asIntN(64, value) === value ? value : Number(value)
  }
  if (!/^[+-]?(?:\d+\.?\d*|\.\d+)$/.test(text)) throw new JsonPathError(`cannot parse number ${text}`)
  return Number(text)
}

function readArray(reader: Reader, nodes: Node[]): void {
  const start = reader.at
  for (;;) {
    const char = reader.next()
    if (char === '' || char === '\n') throw new JsonPathError('unterminated array')
    if (char === ']') break
  }
  const written = reader.text.slice(start, reader.at - 1)
  const text = written === '*' ? ':' : written
  const parts = text.split(',')
  if (parts.length > 1) {
    const lists = parts.map((part) => parseAction(`[${part.replaceAll(/^ +| +$/g, '')}]`))
    nodes.push({ type: 'union', lists })
    return
  }
  const key = /^'([^']*)'$/.exec(text)
  if (key !== null) nodes.push(...parseAction(`.${key[1]}`).nodes)
  else nodes.push({ type: 'array', bounds: boundsOf(text) })
}

function boundsOf(text: string): [Bound, Bound, Bound] {
  const match = /^(-?\d*)(:-?\d*)?(:-?\d*)?$/.exec(text)
  if (match === null) throw new JsonPathError(`invalid array index ${text}`)
  const [, first = '', second, third] = match
  const start = boundOf(first)
  const end = second === undefined ? { value: start.value + 1, known: true, derived: true } : boundOf(second.slice(1))
  return [start, end, boundOf(third?.slice(1) ?? '')]
}

function boundOf(text: string): Bound {
  if (text === '') return { value: 0, known: false }
  if (text === '-') throw new JsonPathError(`array index ${text} is not a number`)
  const value = BigInt(text)
  if (BigInt.asIntN(64, value) !== value) throw new JsonPathError(`array index ${text} is not a number`)
  return { value: Number(value), known: true }
}

function readFilter(reader: Reader, nodes: Node[]): void {
  const text = readFilterText(reader)
  const match = /^([^!<>=]+)([!<>=]+)(.+?)$/.exec(text)
  if (match === null) {
    const right: ListNode = { type: 'list', nodes: [] }
    nodes.push({ type: 'filter', left: parseAction(text), operator: 'exists', right })
    return
  }
  const [, left = '', operator = '', right = ''] = match
  nodes.push({ type: 'filter', left: parseAction(left), operator, right: parseAction(right) })
}

/** Reads up to `)]`. One pair of quotes may contain parentheses. */
function readFilterText(reader: Reader): string {
  const start = reader.at
  let [begun, ended] = ['', false]
  for (;;) {
    const char = reader.next()
    if (char === '' || char === '\n') throw new JsonPathError('unterminated filter')
    if (char === ')' && (begun !== '') === ended) break
    if (char !== '"' && char !== "'") continue
    if (begun === '') begun = char
    else if (char === begun && reader.text[reader.at - 2] !== '\\') ended = true
  }
  const text = reader.text.slice(start, reader.at - 1)
  if (reader.next() !== ']') throw new JsonPathError('unclosed array expect ]')
  return text
}

/** Go's `%#U`: the code point, and the character if it is printable. */
function unicodeName(char: string): string {
  const number = `U+${(char.codePointAt(0) as number).toString(16).toUpperCase().padStart(4, '0')}`
  return /^[\p{L}\p{M}\p{N}\p{P}\p{S} ]$/u.test(char) ? `${number} '${char}'` : number
}

function unquoted(written: string): string {
  try {
    return unquoteGo(written)
  } catch (error) {
    throw new JsonPathError(`unquote string ${written} error ${(error as Error).message}`)
  }
}
