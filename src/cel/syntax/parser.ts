/**
 * Parses a CEL expression to a tree by cel-go's grammar, by recursive descent. It stops at the first error, and
 * syntax-errors.ts then reports all errors as upstream does.
 */
import type { Expression, Literal, MapEntry, MessageField, Offset, Tree } from './ast.ts'
import { RESERVED_WORDS, type Token, type TokenKind, type Tokens, tokenize } from './lexer.ts'
import { literalOf } from './literals.ts'
import { expandMacro, MacroError } from './macros.ts'
import { codePoints, type Finding } from './source.ts'
import { syntaxErrors } from './syntax-errors.ts'

const MAX_CODE_POINTS = 100_000
const MAX_DEPTH = 250

/** Macros may copy their target, so chains of them double; upstream has no limit. */
const MAX_NODES = 200_000

export type Parsed =
  | { readonly tree: Tree; readonly findings?: undefined }
  | { readonly findings: readonly Finding[]; readonly tree?: undefined }

/** Never throws. `hasBind`: whether `cel.bind` is a macro. */
export function parse(source: string, hasBind = false): Parsed {
  const size = source.length > MAX_CODE_POINTS ? codePoints(source) : 0
  if (size > MAX_CODE_POINTS) {
    return whole(`expression code point size exceeds limit: size: ${size}, limit ${MAX_CODE_POINTS}`)
  }
  const tokens = tokenize(source)
  const parser = new Parser(source, tokens, hasBind)
  try {
    const root = parser.start()
    const findings = [...tokens.findings, ...parser.findings]
    return findings.length > 0 ? { findings } : { tree: { source, root, nextId: parser.nextId } }
  } catch (error) {
    if (error instanceof LimitError) return whole(error.message)
    if (error instanceof Deviation) return { findings: [...tokens.findings, ...syntaxErrors(source, tokens.tokens)] }
    throw error
  }
}

function whole(message: string): Parsed {
  return { findings: [{ at: undefined, message }] }
}

class LimitError extends Error {}

/** The text is not of the grammar. */
class Deviation extends Error {}

const RELATIONS: Partial<Record<TokenKind, string>> = {
  '<': '_<_',
  '<=': '_<=_',
  '>=': '_>=_',
  '>': '_>_',
  '==': '_==_',
  '!=': '_!=_',
  in: '@in',
}

const CALCULATIONS: Partial<Record<TokenKind, readonly [precedence: number, name: string]>> = {
  '*': [2, '_*_'],
  '/': [2, '_/_'],
  '%': [2, '_%_'],
  '+': [1, '_+_'],
  '-': [1, '_-_'],
}

class Parser {
  readonly findings: Finding[] = []
  nextId = 1
  readonly #source: string
  readonly #tokens: readonly Token[]
  readonly #hasBind: boolean
  #index = 0
  #relationDepth = 0
  #calculationDepth = 0
  /** Of the expression parsed last: how deep upstream recurses for it when it visits what it parsed. */
  #height = 0

  constructor(source: string, { tokens }: Tokens, hasBind: boolean) {
    this.#source = source
    this.#tokens = tokens
    this.#hasBind = hasBind
  }

  start(): Expression {
    const root = this.#expression()
    this.#expect('EOF')
    if (this.#height > MAX_DEPTH) throw new LimitError('max recursion depth exceeded')
    return root
  }

  #expression(): Expression {
    const condition = this.#conditionalOr()
    const { at } = this.#peek()
    if (!this.#accept('?')) return condition
    let height = this.#height
    const then = this.#conditionalOr()
    height = Math.max(height, this.#height)
    this.#expect(':')
    const otherwise = this.#expression()
    this.#height = Math.max(height, this.#height) + 1
    return this.#call('_?_:_', at, [condition, then, otherwise])
  }

  #conditionalOr(): Expression {
    return this.#logic('||', '_||_', () => this.#conditionalAnd())
  }

  #conditionalAnd(): Expression {
    return this.#logic('&&', '_&&_', () => this.#relation())
  }

  #logic(kind: TokenKind, name: string, parseTerm: () => Expression): Expression {
    const first = parseTerm()
    if (this.#peek().kind !== kind) return first
    const terms = [first]
    const operators: Offset[] = []
    let height = this.#height
    while (this.#peek().kind === kind) {
      operators.push(this.#next().at)
      terms.push(parseTerm())
      height = Math.max(height, this.#height)
    }
    this.#height = height
    return this.#balance(name, terms, operators)
  }

  /** As upstream, so that long chains are not deep. */
  #balance(name: string, terms: readonly Expression[], operators: readonly Offset[]): Expression {
    const build = (low: number, high: number): Expression => {
      const middle = (low + high + 1) >> 1
      const left = middle === low ? terms[middle] : build(low, middle - 1)
      const right = middle === high ? terms[middle + 1] : build(middle + 1, high)
      return this.#call(name, operators[middle] as Offset, [left as Expression, right as Expression])
    }
    return build(0, operators.length - 1)
  }

  #relation(): Expression {
    this.#enterRelation()
    let left = this.#calculation(1)
    for (;;) {
      const name = RELATIONS[this.#peek().kind]
      if (name === undefined) break
      const { at } = this.#next()
      const height = this.#height
      this.#enterRelation()
      const right = this.#calculation(1)
      this.#relationDepth--
      this.#height = Math.max(height, this.#height) + 1
      left = this.#call(name, at, [left, right])
    }
    this.#relationDepth--
    return left
  }

  #enterRelation(): void {
    if (++this.#relationDepth > MAX_DEPTH) throw new LimitError(`expression recursion limit exceeded: ${MAX_DEPTH}`)
  }

  #calculation(minimum: number): Expression {
    if (++this.#calculationDepth > MAX_DEPTH) throw new LimitError(`expression recursion limit exceeded: ${MAX_DEPTH}`)
    let left = this.#unary()
    for (;;) {
      const [precedence, name] = CALCULATIONS[this.#peek().kind] ?? [0, '']
      if (precedence < minimum) break
      const { at } = this.#next()
      const height = this.#height
      const right = this.#calculation(precedence + 1)
      this.#height = Math.max(height, this.#height) + 1
      left = this.#call(name, at, [left, right])
    }
    this.#calculationDepth--
    return left
  }

  /** An even number of signs is none. */
  #unary(): Expression {
    const { kind, at } = this.#peek()
    if ((kind !== '!' && kind !== '-') || this.#isNegativeNumber()) return this.#member()
    let count = 0
    while (this.#accept(kind)) count++
    const operand = this.#member()
    return count % 2 === 0 ? operand : this.#call(kind === '!' ? '!_' : '-_', at, [operand])
  }

  #isNegativeNumber(): boolean {
    const after = this.#tokens[this.#index + 1]?.kind
    return this.#peek().kind === '-' && (after === 'NUM_INT' || after === 'NUM_FLOAT')
  }

  #member(): Expression {
    let operand = this.#primary()
    for (;;) {
      const { kind } = this.#peek()
      if (kind === '.') operand = this.#afterDot(operand)
      else if (kind === '[') operand = this.#afterBracket(operand)
      else return operand
    }
  }

  #afterDot(operand: Expression): Expression {
    const { at } = this.#next()
    const height = this.#height + 1
    const isOptional = this.#accept('?')
    const name = this.#peek()
    if (name.kind !== 'IDENTIFIER' && name.kind !== 'ESC_IDENTIFIER') throw new Deviation()
    this.#next()
    const field = this.#fieldName(name, name.at)
    if (isOptional) {
      this.#height = height
      const literal = { ...this.#node(name.at), kind: 'literal', value: { type: 'string', value: field } } as const
      return this.#call('_?._', at, [operand, literal])
    }
    const open = this.#peek()
    if (name.kind === 'IDENTIFIER' && this.#accept('(')) {
      this.#height = height - 1
      const args = this.#arguments()
      this.#height++
      return this.#callOrMacro(field, open.at, operand, args)
    }
    this.#height = height
    return { ...this.#node(at), kind: 'select', operand, field, isTest: false }
  }

  /** Names in backticks are in the grammar, but Kubernetes does not have them on. */
  #fieldName(token: Token, at: Offset): string {
    if (token.kind === 'IDENTIFIER') return this.#text(token)
    this.findings.push({ at, message: "unsupported syntax: '`'" })
    return ''
  }

  #afterBracket(operand: Expression): Expression {
    const { at } = this.#next()
    const height = this.#height
    const name = this.#accept('?') ? '_[?_]' : '_[_]'
    const index = this.#expression()
    this.#expect(']')
    this.#height = Math.max(height, this.#height) + 1
    return this.#call(name, at, [operand, index])
  }

  #primary(): Expression {
    this.#height = 0
    const token = this.#peek()
    switch (token.kind) {
      case '(':
        return this.#nested()
      case '[':
        return this.#list()
      case '{':
        return this.#map()
      case '.':
      case 'IDENTIFIER':
        return this.#name()
      default:
        return this.#literal(token)
    }
  }

  #nested(): Expression {
    this.#next()
    const inner = this.#expression()
    this.#expect(')')
    return inner
  }

  #name(): Expression {
    const start = this.#peek()
    const braces = this.#braceAfterName()
    if (braces !== undefined) return this.#message(braces)
    const dot = this.#accept('.') ? '.' : ''
    const token = this.#expect('IDENTIFIER')
    const text = this.#text(token)
    const open = this.#peek()
    const args = this.#accept('(') ? this.#arguments() : undefined
    if (RESERVED_WORDS.has(text)) return this.#invalid(start.at, `reserved identifier: ${text}`)
    if (args !== undefined) return this.#callOrMacro(dot + text, open.at, undefined, args)
    return { ...this.#node(token.at), kind: 'identifier', name: dot + text }
  }

  /** The index of the `{` that makes a qualified name that of a message. */
  #braceAfterName(): number | undefined {
    let index = this.#index + (this.#peek().kind === '.' ? 1 : 0)
    if (this.#tokens[index++]?.kind !== 'IDENTIFIER') return undefined
    while (this.#tokens[index]?.kind === '.' && this.#tokens[index + 1]?.kind === 'IDENTIFIER') index += 2
    return this.#tokens[index]?.kind === '{' ? index : undefined
  }

  #message(brace: number): Expression {
    const typeName = this.#tokens.slice(this.#index, brace).map((token) => this.#text(token))
    this.#index = brace
    const open = this.#next()
    const first = this.#peek()
    const fields = this.#items('}', (): MessageField => {
      const isOptional = this.#accept('?')
      const name = this.#peek()
      if (name.kind !== 'IDENTIFIER' && name.kind !== 'ESC_IDENTIFIER') throw new Deviation()
      this.#next()
      const field = this.#fieldName(name, first.at)
      const colon = this.#expect(':')
      return { ...this.#node(colon.at), field, value: this.#expression(), isOptional }
    })
    return { ...this.#node(open.at), kind: 'message', typeName: typeName.join(''), fields }
  }

  #list(): Expression {
    const open = this.#next()
    const optional = new Set<number>()
    let index = 0
    const elements = this.#items(']', () => {
      if (this.#accept('?')) optional.add(index)
      index++
      return this.#expression()
    })
    return { ...this.#node(open.at), kind: 'list', elements, optional }
  }

  #map(): Expression {
    const open = this.#next()
    const entries = this.#items('}', (): MapEntry => {
      const isOptional = this.#accept('?')
      const key = this.#expression()
      const height = this.#height
      const colon = this.#expect(':')
      const value = this.#expression()
      this.#height = Math.max(height, this.#height)
      return { ...this.#node(colon.at), key, value, isOptional }
    })
    return { ...this.#node(open.at), kind: 'map', entries }
  }

  /** With commas between them, and one at the end if so written, even after none. */
  #items<T>(close: TokenKind, parseItem: () => T): readonly T[] {
    const items: T[] = []
    let height = 0
    while (this.#peek().kind !== close && this.#peek().kind !== ',') {
      items.push(parseItem())
      height = Math.max(height, this.#height)
      if (this.#peek().kind !== ',' || this.#tokens[this.#index + 1]?.kind === close) break
      this.#next()
    }
    this.#accept(',')
    this.#expect(close)
    this.#height = height
    return items
  }

  /** After the parenthesis; keeps the greatest height. */
  #arguments(): readonly Expression[] {
    const args: Expression[] = []
    let height = this.#height
    if (!this.#accept(')')) {
      do {
        args.push(this.#expression())
        height = Math.max(height, this.#height)
      } while (this.#accept(','))
      this.#expect(')')
    }
    this.#height = height
    return args
  }

  #literal(token: Token): Expression {
    const isNegative = this.#isNegativeNumber()
    if (isNegative) this.#next()
    const result = literalOf(this.#peek().kind, this.#text(this.#peek()), isNegative)
    if (result === undefined) throw new Deviation()
    this.#next()
    if (result.type === 'invalid') return this.#invalid(token.at, result.message)
    return { ...this.#node(token.at), kind: 'literal', value: result }
  }

  #callOrMacro(name: string, at: Offset, target: Expression | undefined, args: readonly Expression[]): Expression {
    try {
      const expanded = expandMacro(name, { at, target, args, newId: () => this.#newId(), hasBind: this.#hasBind })
      return expanded ?? { ...this.#node(at), kind: 'call', function: name, target, args }
    } catch (error) {
      if (!(error instanceof MacroError)) throw error
      return this.#invalid(error.at, error.message)
    }
  }

  #call(name: string, at: Offset, args: readonly Expression[]): Expression {
    return { ...this.#node(at), kind: 'call', function: name, target: undefined, args }
  }

  /** A placeholder for an error that does not prevent parsing the rest. */
  #invalid(at: Offset, message: string): Literal {
    this.findings.push({ at, message })
    return { ...this.#node(at), kind: 'literal', value: { type: 'null' } }
  }

  #node(at: Offset): { id: number; at: Offset } {
    return { id: this.#newId(), at }
  }

  #newId(): number {
    if (this.nextId > MAX_NODES) throw new LimitError(`expression exceeds limit of ${MAX_NODES} nodes`)
    return this.nextId++
  }

  #peek(): Token {
    return this.#tokens[this.#index] as Token
  }

  #next(): Token {
    return this.#tokens[this.#index++] as Token
  }

  #accept(kind: TokenKind): boolean {
    if (this.#peek().kind !== kind) return false
    this.#index++
    return true
  }

  #expect(kind: TokenKind): Token {
    if (this.#peek().kind !== kind) throw new Deviation()
    return this.#next()
  }

  #text(token: Token): string {
    return this.#source.slice(token.start, token.end)
  }
}
