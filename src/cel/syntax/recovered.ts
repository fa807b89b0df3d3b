/**
 * Rebuilds the nodes that upstream's parser recovers from invalid text, and finds the errors in them. Upstream reports
 * these errors too: reserved words, literals out of range and invalid macro arguments.
 */
import type { Expression, Offset } from './ast.ts'
import type { RuleName } from './grammar.ts'
import { RESERVED_WORDS, type Token, type TokenKind } from './lexer.ts'
import { literalOf } from './literals.ts'
import { expandMacro, MacroError } from './macros.ts'
import type { Finding } from './source.ts'

/** The part of a rule, or of one of its alternatives, that the parser has walked. */
export interface Part {
  /** Undefined of alternatives. */
  readonly rule: RuleName | undefined
  /** Of alternatives: which. */
  readonly alternative: number | undefined
  readonly start: Token
  /** Tokens that were skipped are not among them; one that was taken to be there has no text. */
  readonly parts: (Part | Token)[]
}

/** Where upstream says it does not know. */
const NOWHERE = -1

export function findInRecovered(source: string, start: Part): readonly Finding[] {
  const visitor = new Visitor(source)
  visitor.visit(ruleIn(start, 'expr'))
  return visitor.findings
}

class Visitor {
  readonly findings: Finding[] = []
  readonly #source: string
  #id = 0

  constructor(source: string) {
    this.#source = source
  }

  visit(part: Part | undefined): Expression {
    switch (part?.rule) {
      case 'unary':
        return this.#unary(part)
      case 'member':
        return this.#member(part)
      case 'primary':
        return this.#primary(part)
      case 'literal':
        return this.#literal(part)
      default: {
        // Of all others, the first is all there is unless operators follow.
        const operands = part === undefined ? [] : [...rulesIn(part), ...choicesIn(part).flatMap((one) => rulesIn(one))]
        const visited = operands.map((operand) => this.visit(operand))
        if (visited.length === 1) return visited[0] as Expression
        return part === undefined || visited.length === 0 ? this.#unknown(NOWHERE) : this.#call(operatorOf(part))
      }
    }
  }

  #unary(part: Part): Expression {
    const [choice] = choicesIn(part)
    if (choice === undefined) return this.#unknown(part.start.at)
    const operand = this.visit(ruleIn(choice, 'member'))
    return tokensIn(choice).length % 2 === 0 ? operand : this.#call(part.start.at)
  }

  #member(part: Part): Expression {
    let operand = this.visit(ruleIn(part, 'primary'))
    for (const choice of choicesIn(part)) {
      if (choice.alternative === 0) operand = this.#select(part, choice, operand)
      else if (choice.alternative === 1) operand = this.#memberCall(part, choice, operand)
      else {
        this.visit(ruleIn(choice, 'expr'))
        operand = this.#call(tokenIn(choice, '[')?.at ?? NOWHERE)
      }
    }
    return operand
  }

  #select(part: Part, choice: Part, operand: Expression): Expression {
    const name = ruleIn(choice, 'escapeIdent')
    if (name === undefined) return this.#unknown(part.start.at)
    const field = this.#fieldName(name, name.start.at)
    const { at } = tokenIn(choice, '.') as Token
    if (tokenIn(choice, '?') !== undefined) return this.#call(at)
    return { id: this.#id++, at, kind: 'select', operand, field, isTest: false }
  }

  #fieldName(name: Part | undefined, at: Offset): string {
    const [choice] = name === undefined ? [] : choicesIn(name)
    const token = choice === undefined ? undefined : tokensIn(choice)[0]
    if (token === undefined) this.findings.push({ at, message: 'unsupported ident kind' })
    else if (token.kind === 'ESC_IDENTIFIER') this.findings.push({ at, message: "unsupported syntax: '`'" })
    return token?.kind === 'IDENTIFIER' ? this.#text(token) : ''
  }

  #memberCall(part: Part, choice: Part, target: Expression): Expression {
    const name = tokenIn(choice, 'IDENTIFIER')
    if (name === undefined) return this.#unknown(part.start.at)
    return this.#expand(this.#text(name), choice, target)
  }

  #primary(part: Part): Expression {
    const [choice] = choicesIn(part)
    switch (choice?.alternative) {
      case undefined:
        return this.#unknown(NOWHERE)
      case 0:
      case 1:
        return this.#name(part, choice)
      case 2:
        return this.visit(ruleIn(choice, 'expr'))
      case 6:
        return this.visit(ruleIn(choice, 'literal'))
      default:
        return this.#aggregate(part, choice as Part)
    }
  }

  #name(part: Part, choice: Part): Expression {
    const token = tokenIn(choice, 'IDENTIFIER')
    if (token === undefined) return this.#unknown(part.start.at)
    const text = this.#text(token)
    if (RESERVED_WORDS.has(text)) return this.#invalid(part.start.at, `reserved identifier: ${text}`)
    const name = tokenIn(choice, '.') === undefined ? text : `.${text}`
    if (choice.alternative === 1) return this.#expand(name, choice, undefined)
    return { id: this.#id++, at: token.at, kind: 'identifier', name }
  }

  #expand(name: string, choice: Part, target: Expression | undefined): Expression {
    const list = ruleIn(choice, 'exprList')
    const args = list === undefined ? [] : rulesIn(list).map((arg) => this.visit(arg))
    const at = tokenIn(choice, '(')?.at ?? NOWHERE
    try {
      const expanded = expandMacro(name, { at, target, args, newId: () => this.#id++ })
      // No more of it than its kind: macros copy their targets.
      return expanded?.kind === 'select' ? expanded : this.#call(at)
    } catch (error) {
      if (!(error instanceof MacroError)) throw error
      return this.#invalid(error.at, error.message)
    }
  }

  /** Entries count as far as all of their parts are there. */
  #aggregate(part: Part, choice: Part): Expression {
    const [items] = rulesIn(choice)
    if (items?.rule === 'listInit') for (const item of rulesIn(items)) this.visit(item)
    if (items?.rule === 'mapInitializerList') this.#mapEntries(items)
    if (items?.rule === 'fieldInitializerList') this.#fields(items)
    if (choice.alternative !== 3) return this.#unknown(tokenIn(choice, '{')?.at ?? NOWHERE)
    return { id: this.#id++, at: part.start.at, kind: 'list', elements: [], optional: new Set() }
  }

  #mapEntries(items: Part): void {
    const keys = rulesIn(items).filter(({ rule }) => rule === 'optExpr')
    const values = rulesIn(items).filter(({ rule }) => rule === 'expr')
    for (const [i, value] of values.entries()) {
      this.visit(keys[i])
      this.visit(value)
    }
  }

  #fields(items: Part): void {
    const names = rulesIn(items).filter(({ rule }) => rule === 'optField')
    const values = rulesIn(items).filter(({ rule }) => rule === 'expr')
    for (const [i, value] of values.entries()) {
      const before = this.findings.length
      this.#fieldName(ruleIn(names[i] as Part, 'escapeIdent'), items.start.at)
      if (this.findings.length === before) this.visit(value)
    }
  }

  #literal(part: Part): Expression {
    const [choice] = choicesIn(part)
    const token = choice === undefined ? undefined : tokensIn(choice).at(-1)
    if (choice === undefined || token === undefined) return this.#unknown(NOWHERE)
    const value = literalOf(token.kind, this.#text(token), tokenIn(choice, '-') !== undefined)
    if (value?.type === 'invalid') return this.#invalid(part.start.at, value.message)
    return this.#unknown(part.start.at)
  }

  #invalid(at: Offset, message: string): Expression {
    this.findings.push({ at, message })
    return this.#unknown(at)
  }

  /** Also of literals: no macro tells them apart. */
  #unknown(at: Offset): Expression {
    return { id: this.#id++, at, kind: 'literal', value: { type: 'null' } }
  }

  #call(at: Offset): Expression {
    return { id: this.#id++, at, kind: 'call', function: '', target: undefined, args: [] }
  }

  #text(token: Token): string {
    return this.#source.slice(token.start, token.end)
  }
}

/** Where the outermost of its operations is: chains of logic are balanced, others lean to the left. */
function operatorOf(part: Part): Offset {
  const operators = [...tokensIn(part), ...choicesIn(part).flatMap((choice) => tokensIn(choice))]
  if (part.rule === 'expr') return operators[0]?.at ?? NOWHERE
  const isLogic = part.rule === 'conditionalOr' || part.rule === 'conditionalAnd'
  return operators.at(isLogic ? operators.length >> 1 : -1)?.at ?? NOWHERE
}

const isPart = (part: Part | Token): part is Part => 'parts' in part

function rulesIn({ parts }: Part): readonly Part[] {
  return parts.filter(isPart).filter(({ rule }) => rule !== undefined)
}

function ruleIn(part: Part, name: RuleName): Part | undefined {
  return rulesIn(part).find(({ rule }) => rule === name)
}

function choicesIn({ parts }: Part): readonly Part[] {
  return parts.filter(isPart).filter(({ rule }) => rule === undefined)
}

function tokensIn({ parts }: Part): readonly Token[] {
  return parts.filter((part): part is Token => !isPart(part))
}

function tokenIn(part: Part, kind: TokenKind): Token | undefined {
  return tokensIn(part).find((token) => token.kind === kind)
}
