/** Parses tokens of a Go template into its syntax tree. Error texts are those of text/template. */
import { goQuote } from '#lib/go/text.ts'

import { parseGoNumber, parseGoRune, unquoteGo } from './literal.ts'
import { type Command, type Expression, expressionText, type List, type Node, type Pipeline } from './node.ts'
import { type Token, tokenize, tokenName } from './token.ts'

/** A template error with upstream's name and line. */
export class TemplateError extends Error {}

/** The trees of the template and of all templates defined in it. Throws TemplateError. */
export function parseTemplates(name: string, source: string, functions: ReadonlySet<string>): Map<string, List> {
  const trees = new Map<string, List>()
  new Parser(name, tokenize(source), { functions, trees }).parseAll()
  return trees
}

interface ParseScope {
  readonly functions: ReadonlySet<string>
  readonly trees: Map<string, List>
}

/** The tokens that end a list. */
type End = { readonly type: 'end' | 'else'; readonly at: number }

const EXPRESSION = new Set(
  'bool rune dot field identifier number raw string variable open'.split(' ') as Token['type'][],
)
const NOT_EXECUTABLE = new Set<Expression['type']>(['bool', 'dot', 'nil', 'number', 'string'])

class Parser {
  readonly #name: string
  readonly #tokens: readonly Token[]
  readonly #around: ParseScope
  #at = 0
  #variables: string[] = ['$']
  #ranges = 0
  #actionLine = 0

  constructor(name: string, tokens: readonly Token[], around: ParseScope) {
    this.#name = name
    this.#tokens = tokens
    this.#around = around
  }

  parseAll(): void {
    const root: List = { type: 'list', at: 0, nodes: [] }
    while (this.#peek().type !== 'eof') {
      if (this.#startsDefinition()) {
        this.#parseDefinition()
        continue
      }
      const node = this.#textOrAction()
      if (isEnd(node)) this.#fail(`unexpected {{${node.type}}}`)
      root.nodes.push(node)
    }
    this.#add(this.#name, root)
  }

  #fail(message: string): never {
    const line = this.#tokens[Math.max(0, this.#at - 1)]?.line ?? 1
    throw new TemplateError(`template: ${this.#name}:${line}: ${message}`)
  }

  #unexpected(token: Token, context: string): never {
    if (token.type !== 'error') this.#fail(`unexpected ${tokenName(token)} in ${context}`)
    const isElsewhere = this.#actionLine !== 0 && this.#actionLine !== token.line
    const start = token.text.endsWith(' action') ? ' started' : ' in action started'
    this.#fail(token.text + (isElsewhere ? `${start} at ${this.#name}:${this.#actionLine}` : ''))
  }

  #peek(): Token {
    return this.#tokens[Math.min(this.#at, this.#tokens.length - 1)] as Token
  }

  #next(): Token {
    const token = this.#peek()
    this.#at++
    return token
  }

  #peekPast(): Token {
    while (this.#peek().type === 'space') this.#at++
    return this.#peek()
  }

  #nextPast(): Token {
    this.#peekPast()
    return this.#next()
  }

  #expectRight(context: string): Token {
    const token = this.#nextPast()
    return token.type === 'right' ? token : this.#unexpected(token, context)
  }

  #startsDefinition(): boolean {
    const start = this.#at
    if (this.#peek().type !== 'left') return false
    this.#at++
    const isDefinition = isKeyword(this.#nextPast(), 'define')
    if (!isDefinition) this.#at = start
    return isDefinition
  }

  /** Variables of the surrounding template are not visible inside. */
  #apart<T>(parse: () => T): T {
    const [variables, ranges] = [this.#variables, this.#ranges]
    ;[this.#variables, this.#ranges] = [['$'], 0]
    const parsed = parse()
    ;[this.#variables, this.#ranges] = [variables, ranges]
    return parsed
  }

  #parseDefinition(): void {
    const name = this.#templateName('define clause')
    this.#expectRight('define clause')
    this.#apart(() => this.#parseBody(name, 'define clause'))
  }

  #parseBody(name: string, context: string): void {
    const { list, end } = this.#itemList()
    if (end.type !== 'end') this.#fail(`unexpected {{${end.type}}} in ${context}`)
    this.#add(name, list)
  }

  #add(name: string, tree: List): void {
    const there = this.#around.trees.get(name)
    if (there === undefined || isEmpty(there)) this.#around.trees.set(name, tree)
    else if (!isEmpty(tree)) this.#fail(`template: multiple definition of template ${goQuote(name)}`)
  }

  #templateName(context: string): string {
    const token = this.#nextPast()
    if (token.type !== 'string' && token.type !== 'raw') this.#unexpected(token, context)
    return this.#unquoted(token)
  }

  #unquoted(token: Token): string {
    return this.#read(() => unquoteGo(token.text))
  }

  #read<T>(parse: () => T): T {
    try {
      return parse()
    } catch (error) {
      return this.#fail((error as Error).message)
    }
  }

  #itemList(): { list: List; end: End } {
    const list: List = { type: 'list', at: this.#peekPast().at, nodes: [] }
    while (this.#peekPast().type !== 'eof') {
      const node = this.#textOrAction()
      if (isEnd(node)) return { list, end: node }
      list.nodes.push(node)
    }
    this.#at++
    return this.#fail('unexpected EOF')
  }

  #textOrAction(): Node | End {
    const token = this.#nextPast()
    if (token.type === 'text') return { type: 'text', at: token.at, text: token.text }
    if (token.type !== 'left') this.#unexpected(token, 'input')
    this.#actionLine = token.line
    const node = this.#action()
    this.#actionLine = 0
    return node
  }

  #action(): Node | End {
    const token = this.#nextPast()
    if (token.type === 'keyword' && token.text !== 'nil') return this.#control(token)
    this.#at--
    const at = this.#peek().at
    return { type: 'action', at, pipe: this.#pipeline('command', 'right') }
  }

  #control(token: Token): Node | End {
    switch (token.text) {
      case 'if':
      case 'with':
      case 'range':
        return this.#branch(token.text)
      case 'end':
        return { type: 'end', at: this.#expectRight('end').at }
      case 'else':
        return this.#else()
      case 'break':
      case 'continue':
        return this.#leave(token, token.text)
      case 'template':
        return this.#template()
      case 'block':
        return this.#block()
      default:
        return this.#unexpected(token, 'command')
    }
  }

  #else(): End {
    const token = this.#peekPast()
    if (isKeyword(token, 'if') || isKeyword(token, 'with')) return { type: 'else', at: token.at }
    return { type: 'else', at: this.#expectRight('else').at }
  }

  #leave(token: Token, type: 'break' | 'continue'): Node {
    const next = this.#nextPast()
    if (next.type !== 'right') this.#unexpected(next, `{{${type}}}`)
    if (this.#ranges === 0) this.#fail(`{{${type}}} outside {{range}}`)
    return { type, at: token.at }
  }

  #template(): Node {
    const at = this.#peekPast().at
    const name = this.#templateName('template clause')
    if (this.#peekPast().type !== 'right') {
      return { type: 'template', at, name, pipe: this.#pipeline('template clause', 'right') }
    }
    this.#at++
    return { type: 'template', at, name, pipe: undefined }
  }

  #block(): Node {
    const at = this.#peekPast().at
    const name = this.#templateName('block clause')
    const pipe = this.#pipeline('block clause', 'right')
    this.#apart(() => this.#parseBody(name, 'block clause'))
    return { type: 'template', at, name, pipe }
  }

  #branch(type: 'if' | 'with' | 'range'): Node {
    const scope = this.#variables.length
    const pipe = this.#pipeline(type, 'right')
    if (type === 'range') this.#ranges++
    const { list, end } = this.#itemList()
    if (type === 'range') this.#ranges--
    const otherwise = end.type === 'else' ? this.#otherwise(type, end.at) : undefined
    this.#variables.length = scope
    return { type, at: pipe.at, pipe, list, otherwise }
  }

  #otherwise(type: 'if' | 'with' | 'range', at: number): List {
    if (type !== 'range' && isKeyword(this.#peek(), type)) {
      this.#at++
      return { type: 'list', at, nodes: [this.#branch(type)] }
    }
    const { list, end } = this.#itemList()
    if (end.type !== 'end') this.#fail(`expected end; found {{${end.type}}}`)
    return list
  }

  #pipeline(context: string, closing: 'right' | 'close'): Pipeline {
    const at = this.#peekPast().at
    const { variables, isAssign } = this.#declarations(context)
    const commands: Command[] = []
    for (;;) {
      const token = this.#nextPast()
      if (token.type === closing) break
      if (!EXPRESSION.has(token.type) && !isKeyword(token, 'nil')) this.#unexpected(token, context)
      this.#at--
      commands.push(this.#command())
    }
    if (commands.length === 0) this.#fail(`missing value for ${context}`)
    const wrong = commands.findIndex(({ args }, stage) => stage > 0 && NOT_EXECUTABLE.has(args[0]?.type ?? 'nil'))
    if (wrong > 0) this.#fail(`non executable command in pipeline stage ${wrong + 1}`)
    return { type: 'pipe', at, variables, isAssign, commands }
  }

  #declarations(context: string): { variables: string[]; isAssign: boolean } {
    const variables: string[] = []
    for (;;) {
      const start = this.#at
      const variable = this.#peekPast()
      if (variable.type !== 'variable') return { variables, isAssign: false }
      this.#at++
      const next = this.#nextPast()
      const isLast = next.type === 'assign' || next.type === 'declare'
      const isComma = next.type === 'char' && next.text === ','
      if (!isLast && !isComma) {
        this.#at = start
        return { variables, isAssign: false }
      }
      variables.push(variable.text)
      this.#variables.push(variable.text)
      if (isLast) return { variables, isAssign: next.type === 'assign' }
      if (context !== 'range' || variables.length > 1) this.#fail(`too many declarations in ${context}`)
      const follows = this.#peekPast().type
      if (follows !== 'variable' && follows !== 'right' && follows !== 'close') {
        this.#at++
        this.#fail('range can only initialize variables')
      }
    }
  }

  #command(): Command {
    const at = this.#peekPast().at
    const args: Expression[] = []
    for (;;) {
      this.#peekPast()
      const operand = this.#operand()
      if (operand !== undefined) args.push(operand)
      const token = this.#next()
      if (token.type === 'space') continue
      if (token.type === 'right' || token.type === 'close') this.#at--
      else if (token.type !== 'pipe') this.#unexpected(token, 'operand')
      break
    }
    if (args.length === 0) this.#fail('empty command')
    return { type: 'command', at, args }
  }

  #operand(): Expression | undefined {
    const node = this.#term()
    if (node === undefined || this.#peek().type !== 'field') return node
    const at = this.#peek().at
    const names: string[] = []
    while (this.#peek().type === 'field') names.push(this.#next().text.slice(1))
    if (node.type === 'field' || node.type === 'variable') return { ...node, at, names: [...node.names, ...names] }
    if (NOT_EXECUTABLE.has(node.type)) this.#fail(`unexpected . after term ${goQuote(expressionText(node))}`)
    return { type: 'chain', at, node, names }
  }

  #term(): Expression | undefined {
    const token = this.#nextPast()
    const { at, text } = token
    switch (token.type) {
      case 'identifier':
        if (!this.#around.functions.has(text)) this.#fail(`function ${goQuote(text)} not defined`)
        return { type: 'identifier', at, name: text }
      case 'dot':
        return { type: 'dot', at }
      case 'variable':
        if (!this.#variables.includes(text)) this.#fail(`undefined variable ${goQuote(text)}`)
        return { type: 'variable', at, names: [text] }
      case 'field':
        return { type: 'field', at, names: [text.slice(1)] }
      case 'bool':
        return { type: 'bool', at, value: text === 'true' }
      case 'number':
      case 'rune':
        return { type: 'number', at, text, value: this.#read(() => numberOf(token)) }
      case 'open':
        return this.#pipeline('parenthesized pipeline', 'close')
      case 'string':
      case 'raw':
        return { type: 'string', at, text, value: this.#unquoted(token) }
      default:
        if (isKeyword(token, 'nil')) return { type: 'nil', at }
        this.#at--
        return undefined
    }
  }
}

function numberOf({ type, text }: Token): bigint | number {
  return type === 'rune' ? parseGoRune(text) : parseGoNumber(text)
}

function isEnd(node: Node | End): node is End {
  return node.type === 'end' || node.type === 'else'
}

function isKeyword(token: Token, word: string): boolean {
  return token.type === 'keyword' && token.text === word
}

/** True for white space only. */
function isEmpty({ nodes }: List): boolean {
  return nodes.every((node) => node.type === 'text' && node.text.trim() === '')
}
