/** Scans YAML flow collections (`[…]`, `{…}`) as go-yaml does, to find their end or go-yaml's error. */

/** The result of reading a flow collection. Lines count from 0, as in go-yaml. */
export type FlowOutcome =
  | { readonly end: number }
  | { readonly message: string; readonly line: number; readonly offset: number }

type TokenKind = '[' | ']' | '{' | '}' | ',' | 'key' | 'value' | 'scalar' | 'property' | 'other' | 'bad' | 'end'

interface Token {
  readonly kind: TokenKind
  /** Why the scanner refuses it. */
  readonly message?: string
  readonly start: number
  readonly end: number
  readonly line: number
}

/** The outcome of the collection whose bracket is at `start`. Undefined for what only go-yaml's scanner refuses. */
export function readFlow(text: string, start: number): FlowOutcome | undefined {
  try {
    const reader = new FlowReader(text, start)
    return { end: reader.readCollection() }
  } catch (error) {
    if (error instanceof FlowFault) return error.outcome
    throw error
  }
}

class FlowFault extends Error {
  readonly outcome: Exclude<FlowOutcome, { end: number }> | undefined

  constructor(outcome?: Exclude<FlowOutcome, { end: number }>) {
    super(outcome?.message)
    this.outcome = outcome
  }
}

/** Deeper than this js-yaml refuses the document first. */
const MAX_DEPTH = 1_000

class FlowReader {
  readonly #text: string
  readonly #tokens: readonly Token[]
  /** The first position of each name, computed on demand. */
  #anchors: ReadonlyMap<string, number> | undefined
  #at = 0

  constructor(text: string, start: number) {
    this.#text = text
    this.#tokens = tokensOf(text, start)
  }

  /** The offset after the collection that begins here. */
  readCollection(depth = 0): number {
    const open = this.#take()
    if (depth > MAX_DEPTH) throw new FlowFault()
    const close = open.kind === '[' ? ']' : '}'
    for (let isFirst = true; ; isFirst = false) {
      if (!isFirst && this.#next.kind !== close) this.#expectComma(open, close)
      if (this.#next.kind === close) return this.#take().end
      this.#readEntry(close, depth)
    }
  }

  #readEntry(close: ']' | '}', depth: number): void {
    const isAt = (...kinds: readonly TokenKind[]): boolean => kinds.includes(this.#next.kind)
    const hasKey = isAt('key')
    if (hasKey) this.#take()
    if (!hasKey || !isAt('value', ',', close)) this.#readNode(depth)
    if (!hasKey || !isAt('value')) return
    this.#take()
    if (!isAt(',', close)) this.#readNode(depth)
  }

  #readNode(depth: number): void {
    const first = this.#next
    let hasProperty = false
    for (; this.#next.kind === 'property'; hasProperty = true) this.#take()
    const { kind } = this.#next
    if (kind === '[' || kind === '{') this.readCollection(depth + 1)
    else if (kind === 'scalar') this.#readScalar()
    else if (!hasProperty) throw fault('did not find expected node content', this.#next, first)
  }

  /** An alias of nothing is an error at once, before what follows. */
  #readScalar(): void {
    const { start, end } = this.#take()
    if (this.#text.charAt(start) !== '*') return
    const name = this.#text.slice(start + 1, end)
    this.#anchors ??= firstAnchors(this.#text)
    if ((this.#anchors.get(name) ?? Infinity) < start) return
    throw new FlowFault({ message: `unknown anchor '${name}' referenced`, line: 0, offset: start })
  }

  #expectComma(open: Token, close: string): void {
    if (this.#next.kind !== ',') throw fault(`did not find expected ',' or '${close}'`, this.#next, open)
    this.#take()
  }

  get #next(): Token {
    const token = this.#tokens[this.#at] as Token
    refuseBad(token)
    // A node may turn out to be a key, so the scanner reads the token after it as well.
    if (token.kind === 'scalar') refuseBad(this.#tokens[this.#at + 1])
    return token
  }

  #take(): Token {
    const token = this.#next
    if (token.kind === 'end') throw new FlowFault()
    this.#at++
    return token
  }
}

/** The scanner counts from 1 what the parser counts from 0, and takes line 0 for unknown too. */
function refuseBad(token: Token | undefined): void {
  if (token?.kind !== 'bad') return
  const { message = '', line, start } = token
  throw new FlowFault(message === '' ? undefined : { message, line: line === 0 ? 0 : line + 1, offset: start })
}

/** go-yaml takes line 0 for unknown and names the line of the context instead. */
function fault(message: string, { line, start }: Token, context: Token): FlowFault {
  return new FlowFault({ message, line: line === 0 ? context.line : line, offset: start })
}

const BLANKS = /(?:[ \t\r\n]|(?<=[ \t\r\n,[\]{}])#[^\n]*)*/y
/** A plain scalar goes on over lines, up to what ends it in a flow collection. */
const PLAIN = /(?:[^\s,[\]{}:#]|:(?![\s,[\]{}]|$)|(?<=\S)#|[ \t\r\n]+(?![\s,[\]{}#]|:(?:[\s,[\]{}]|$)))+/y
const QUOTED = /"(?:[^"\\]|\\[^])*"|'(?:[^']|'')*'/y
const PROPERTY = /&[\w-]+|![^\s,[\]{}]*/y
const ALIAS = /\*[\w-]+/y
const NOTHING = /(?!)/y

const NO_NAME = 'did not find expected alphabetic or numeric character'

/** By its first character: the pattern of a token, and what the scanner finds where it does not match. */
const WORDS: readonly (readonly [starts: string, pattern: RegExp, kind: TokenKind, message: string])[] = [
  ['"\'', QUOTED, 'scalar', ''],
  ['&', PROPERTY, 'property', NO_NAME],
  ['!', PROPERTY, 'property', ''],
  ['*', ALIAS, 'scalar', NO_NAME],
  ['@`%|>', NOTHING, 'bad', 'found character that cannot start any token'],
]

/** The tokens from the bracket at `start` on to the end of its collection, or of the text. */
function tokensOf(text: string, start: number): Token[] {
  const tokens: Token[] = []
  const lineAt = lineCounter(text)
  let depth = 0
  let offset = start
  let token: Token
  do {
    offset = matchEnd(BLANKS, text, offset) ?? offset
    token = tokenAt(text, offset, lineAt)
    if (token.kind === 'value') addKey(tokens, token, text)
    tokens.push(token)
    if (token.kind === '[' || token.kind === '{') depth++
    if (token.kind === ']' || token.kind === '}') depth--
    offset = token.end
  } while (depth > 0 && token.kind !== 'end')
  return [...tokens, endToken(text, offset, lineAt)]
}

function tokenAt(text: string, offset: number, lineAt: (offset: number) => number): Token {
  const line = lineAt(offset)
  const make = (kind: TokenKind, end: number): Token => ({ kind, start: offset, end, line })
  const character = text.charAt(offset)
  if (character === '') return endToken(text, offset, lineAt)
  if ('[]{},'.includes(character)) return make(character as TokenKind, offset + 1)
  const isBare = /^(?:[\s,[\]{}]|$)/.test(text.charAt(offset + 1))
  if (character === '?' && isBare) return make('key', offset + 1)
  if (character === ':') return make('value', offset + 1)
  if (character === '-' && isBare) return make('other', offset + 1)
  for (const [starts, pattern, kind, message] of WORDS) {
    if (!starts.includes(character)) continue
    const end = matchEnd(pattern, text, offset)
    return end === undefined ? { ...make('bad', text.length), message } : make(kind, end)
  }
  return make('scalar', matchEnd(PLAIN, text, offset) ?? offset + 1)
}

/** go-yaml ends the last line before it ends the stream. */
function endToken(text: string, offset: number, lineAt: (offset: number) => number): Token {
  const line = lineAt(text.length) + (text === '' || text.endsWith('\n') ? 0 : 1)
  return { kind: 'end', start: offset, end: offset, line }
}

/** The node before a colon is a key when it begins on the line of the colon. */
function addKey(tokens: Token[], value: Token, text: string): void {
  let at = tokens.length - 1
  const last = tokens[at]
  if (last === undefined) return
  if (last.kind === ']' || last.kind === '}') at = openerOf(tokens, at)
  else if (last.kind !== 'scalar') return
  while (tokens[at - 1]?.kind === 'property') at--
  const first = tokens[at] as Token
  const isKey = tokens[at - 1]?.kind === 'key' || first.line !== value.line
  if (!isKey && !text.slice(first.start, value.start).includes('\n')) tokens.splice(at, 0, { ...first, kind: 'key' })
}

function openerOf(tokens: readonly Token[], closer: number): number {
  let depth = 0
  for (let at = closer; at > 0; at--) {
    const { kind } = tokens[at] as Token
    if (kind === ']' || kind === '}') depth++
    if ((kind === '[' || kind === '{') && --depth === 0) return at
  }
  return 0
}

function matchEnd(pattern: RegExp, text: string, offset: number): number | undefined {
  pattern.lastIndex = offset
  return pattern.test(text) ? pattern.lastIndex : undefined
}

function firstAnchors(text: string): Map<string, number> {
  const anchors = new Map<string, number>()
  for (const { 1: name = '', index } of text.matchAll(/&([\w-]+)/g)) if (!anchors.has(name)) anchors.set(name, index)
  return anchors
}

/** The line of an offset, for offsets that grow. */
function lineCounter(text: string): (offset: number) => number {
  let line = 0
  let at = text.indexOf('\n')
  return (offset) => {
    for (; at >= 0 && at < offset; at = text.indexOf('\n', at + 1)) line++
    return line
  }
}
