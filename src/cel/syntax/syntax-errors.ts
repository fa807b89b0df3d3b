/**
 * Reports the syntax errors of an invalid text as upstream's generated parser (ANTLR) does: positions and expected
 * tokens. To find further errors it recovers as ANTLR does: it skips tokens or assumes a missing one.
 */
import { type Element, RULES, type RuleName } from './grammar.ts'
import { recognizedText, type Token, TOKEN_KINDS, type TokenKind } from './lexer.ts'
import { findInRecovered, type Part } from './recovered.ts'
import type { Finding } from './source.ts'

const MAX_RECOVERIES = 30
const MAX_SKIPPED_TOKENS = 256
const MAX_REPORTED = 100
const MAX_DEPTH = 250

/** Of a text that the parser has refused; tokens end with EOF. */
export function syntaxErrors(source: string, tokens: readonly Token[]): readonly Finding[] {
  const walker = new Walker(source, tokens)
  try {
    const start = walker.invoke('start', 0, undefined)
    return [...walker.findings, ...findInRecovered(source, start)]
  } catch (error) {
    if (!(error instanceof GiveUp)) throw error
    return error.message === '' ? walker.findings : [...walker.findings, { at: undefined, message: error.message }]
  }
}

/** A list of what follows within a rule. */
interface Rest {
  readonly element: Element
  readonly rest: Rest | undefined
}

/** Something in the rule is not as it should be; the rule recovers. */
class Mismatch extends Error {
  readonly at: Token
  constructor(message: string, at: Token) {
    super(message)
    this.at = at
  }
}

/** A limit of upstream's; with a message unless that is among the findings already. */
class GiveUp extends Error {}

/** The kinds of tokens that can come first; `isNullable`: or nothing at all. */
interface First {
  readonly tokens: ReadonlySet<TokenKind>
  readonly isNullable: boolean
}

class Walker {
  readonly findings: Finding[] = []
  readonly #source: string
  readonly #tokens: readonly Token[]
  #index = 0
  /** For each rule on the stack, outermost first, the elements that follow it in the rule that invoked it. */
  readonly #follows: (Rest | undefined)[] = []
  readonly #depths = new Map<RuleName, number>()
  #precedence = 0
  #isRecovering = false
  #recoveries = 0
  /** Where it recovered last, and in what: twice at the same place skips a token. */
  #lastErrorIndex = -1
  readonly #lastErrorElements = new Set<Element>()
  #current: Element = RULES.start
  /** The rule that the parser is walking. */
  #part: Part | undefined

  constructor(source: string, tokens: readonly Token[]) {
    this.#source = source
    this.#tokens = tokens
  }

  invoke(rule: RuleName, precedence: number, follow: Rest | undefined): Part {
    const depth = (this.#depths.get(rule) ?? 0) + 1
    if (depth > MAX_DEPTH) throw new GiveUp(`expression recursion limit exceeded: ${MAX_DEPTH}`)
    this.#depths.set(rule, depth)
    const outer = this.#precedence
    const around = this.#part
    this.#precedence = precedence
    const part = this.#begin(rule, undefined)
    if (rule !== 'start') this.#follows.push(follow)
    try {
      this.#walk(RULES[rule], undefined)
    } catch (error) {
      if (!(error instanceof Mismatch)) throw error
      this.#report(error.message, error.at)
      this.#recover()
    }
    if (rule !== 'start') this.#follows.pop()
    this.#part = around
    this.#precedence = outer
    this.#depths.set(rule, depth - 1)
    return part
  }

  #begin(rule: RuleName | undefined, alternative: number | undefined): Part {
    const part: Part = { rule, alternative, start: this.#next(), parts: [] }
    this.#part?.parts.push(part)
    this.#part = part
    return part
  }

  #walk(element: Element, rest: Rest | undefined): void {
    this.#current = element
    switch (element.kind) {
      case 'token':
        return this.#match(element, rest)
      case 'rule':
        this.invoke(element.rule, element.precedence, rest)
        return
      case 'sequence':
        return this.#walkSequence(element.parts, rest)
      case 'optional':
        this.#sync(element, rest)
        if (first(element.part).tokens.has(this.#look(1))) this.#walk(element.part, rest)
        return
      case 'choice': {
        this.#sync(element, rest)
        const chosen = element.choose((n) => this.#look(n))
        if (chosen < 0) throw this.#noViable(-chosen)
        const around = this.#part
        this.#begin(undefined, chosen)
        this.#walk(element.parts[chosen] as Element, rest)
        this.#part = around
        return
      }
      case 'star':
      case 'plus':
        return this.#walkLoop(element, rest)
    }
  }

  #walkSequence(parts: readonly Element[], rest: Rest | undefined): void {
    parts.forEach((part, i) => this.#walk(part, restOf(parts.slice(i + 1), rest)))
  }

  #walkLoop(element: Element & { kind: 'star' | 'plus' }, rest: Rest | undefined): void {
    const again: Rest = { element: repeated(element), rest }
    this.#sync(element, rest)
    let isOn = element.kind === 'plus' || this.#isOn(element)
    while (isOn) {
      this.#walk(element.part, again)
      this.#current = again.element
      if (element.kind === 'plus') this.#syncLoop(again)
      isOn = this.#isOn(element)
    }
  }

  #isOn(element: Element & { kind: 'star' | 'plus' }): boolean {
    const isOn = element.continues((n) => this.#look(n), this.#precedence)
    if (typeof isOn === 'number') throw this.#noViable(isOn)
    return isOn
  }

  #match(element: Element & { kind: 'token' }, rest: Rest | undefined): void {
    if (element.tokens.includes(this.#look(1))) {
      this.#matched()
      return
    }
    this.#countRecovery()
    const expected = this.#expected({ element, rest })
    if (expected.has(this.#look(2))) {
      this.#unwanted(expected)
      this.#consume()
      this.#matched()
    } else if (this.#expected(rest).has(this.#look(1))) {
      const { at } = this.#next()
      this.#report(`missing ${display(expected)} at ${this.#text(this.#next())}`, this.#next())
      this.#part?.parts.push({ kind: element.tokens[0] as TokenKind, start: 0, end: 0, at })
    } else {
      throw this.#mismatch(expected)
    }
  }

  #matched(): void {
    this.#isRecovering = false
    this.#lastErrorIndex = -1
    this.#lastErrorElements.clear()
    this.#part?.parts.push(this.#next())
    this.#consume()
  }

  /** Before a choice: an unexpected token is left out if the one after it is expected. */
  #sync(element: Element, rest: Rest | undefined): void {
    if (this.#isRecovering) return
    const { tokens, isNullable } = firstOf({ element, rest })
    if (isNullable || tokens.has(this.#look(1))) return
    const expected = this.#expected({ element, rest })
    if (!expected.has(this.#look(2))) throw this.#mismatch(expected)
    this.#unwanted(expected)
    this.#consume()
    this.#isRecovering = false
    this.#lastErrorIndex = -1
    this.#lastErrorElements.clear()
  }

  /** Within a loop that has to go on or end with something: skips to what does. */
  #syncLoop(again: Rest): void {
    if (this.#isRecovering) return
    const { tokens, isNullable } = firstOf(again)
    if (isNullable || tokens.has(this.#look(1))) return
    const expected = this.#expected(again)
    this.#unwanted(expected)
    const wanted = new Set([...expected, ...this.#recoverySet()])
    while (this.#look(1) !== 'EOF' && !wanted.has(this.#look(1))) this.#consume()
  }

  #unwanted(expected: ReadonlySet<TokenKind>): void {
    this.#report(`extraneous input ${this.#text(this.#next())} expecting ${display(expected)}`, this.#next())
  }

  #mismatch(expected: ReadonlySet<TokenKind>): Mismatch {
    return new Mismatch(`mismatched input ${this.#text(this.#next())} expecting ${display(expected)}`, this.#next())
  }

  #noViable(looked: number): Mismatch {
    const start = this.#next()
    const offending = this.#tokens[Math.min(this.#index + looked - 1, this.#tokens.length - 1)] as Token
    if (start.kind === 'EOF') return new Mismatch("no viable alternative at input '<EOF>'", offending)
    const input = recognizedText(this.#source, start.start, offending.end)
    // Upstream's own correction of what ANTLR says of reserved words.
    const reserved = /^.(true|false|null)$/.exec(input)?.[1]
    if (reserved !== undefined) return new Mismatch(`mismatched input '${reserved}' expecting IDENTIFIER`, offending)
    return new Mismatch(`no viable alternative at input ${quote(input)}`, offending)
  }

  #report(message: string, { at }: Token): void {
    if (this.#isRecovering) return
    this.#isRecovering = true
    this.#notify(message, at)
  }

  #notify(message: string, at: number): void {
    if (this.findings.length >= MAX_REPORTED) {
      this.findings.push({ at, message: `Syntax error: More than ${MAX_REPORTED} syntax errors` })
      throw new GiveUp()
    }
    this.findings.push({ at, message: `Syntax error: ${message}` })
  }

  #recover(): void {
    this.#countRecovery()
    let skipped = 0
    const skip = (): void => {
      if (skipped++ >= MAX_SKIPPED_TOKENS) {
        throw new GiveUp(`error recovery token lookahead limit exceeded: ${MAX_SKIPPED_TOKENS}`)
      }
      this.#consume()
    }
    if (this.#lastErrorIndex === this.#index && this.#lastErrorElements.has(this.#current)) skip()
    this.#lastErrorIndex = this.#index
    this.#lastErrorElements.add(this.#current)
    const wanted = this.#recoverySet()
    while (this.#look(1) !== 'EOF' && !wanted.has(this.#look(1))) skip()
  }

  #countRecovery(): void {
    if (this.#recoveries++ < MAX_RECOVERIES) return
    this.#notify(`error recovery attempt limit exceeded: ${MAX_RECOVERIES}`, this.#next().at)
    throw new GiveUp()
  }

  /** The tokens that may follow any rule on the stack. */
  #recoverySet(): ReadonlySet<TokenKind> {
    return new Set(this.#follows.flatMap((follow) => [...firstOf(follow).tokens]))
  }

  /** The tokens that may come next, including those after the end of this rule. */
  #expected(rest: Rest | undefined): ReadonlySet<TokenKind> {
    let { tokens, isNullable } = firstOf(rest)
    for (let i = this.#follows.length - 1; i >= 0 && isNullable; i--) {
      const following = firstOf(this.#follows[i])
      tokens = new Set([...tokens, ...following.tokens])
      isNullable = following.isNullable
    }
    return isNullable ? new Set([...tokens, 'EOF']) : tokens
  }

  #next(): Token {
    return this.#tokens[this.#index] as Token
  }

  #look(n: number): TokenKind {
    return this.#tokens[this.#index + n - 1]?.kind ?? 'EOF'
  }

  #consume(): void {
    if (this.#next().kind !== 'EOF') this.#index++
  }

  #text(token: Token): string {
    return quote(token.kind === 'EOF' ? '<EOF>' : this.#source.slice(token.start, token.end))
  }
}

/** The form of a loop after its first round. */
function repeated(element: Element & { kind: 'star' | 'plus' }): Element {
  if (element.kind === 'star') return element
  const known = repetitions.get(element) ?? { ...element, kind: 'star' }
  repetitions.set(element, known)
  return known
}

const repetitions = new Map<Element, Element>()
const firsts = new Map<Element, First>()

function first(element: Element): First {
  const known = firsts.get(element)
  if (known !== undefined) return known
  const found = computeFirst(element)
  firsts.set(element, found)
  return found
}

function computeFirst(element: Element): First {
  switch (element.kind) {
    case 'token':
      return { tokens: new Set(element.tokens), isNullable: false }
    case 'rule':
      return first(RULES[element.rule])
    case 'sequence':
      return firstOf(restOf(element.parts, undefined))
    case 'choice':
      return { tokens: new Set(element.parts.flatMap((part) => [...first(part).tokens])), isNullable: false }
    case 'optional':
    case 'star':
    case 'plus':
      return { tokens: first(element.part).tokens, isNullable: element.kind !== 'plus' }
  }
}

function followedBy(after: First, before: First): First {
  if (!before.isNullable) return before
  return { tokens: new Set([...before.tokens, ...after.tokens]), isNullable: after.isNullable }
}

function restOf(parts: readonly Element[], after: Rest | undefined): Rest | undefined {
  return parts.reduceRight<Rest | undefined>((rest, element) => ({ element, rest }), after)
}

function firstOf(rest: Rest | undefined): First {
  if (rest === undefined) return { tokens: new Set(), isNullable: true }
  const own = first(rest.element)
  return own.isNullable ? followedBy(firstOf(rest.rest), own) : own
}

/** In the order of their numbers; names of literal tokens are quoted. */
function display(kinds: ReadonlySet<TokenKind>): string {
  const names = TOKEN_KINDS.filter((kind) => kinds.has(kind)).map((kind) => {
    if (kind === 'EOF') return '<EOF>'
    return /^[A-Z_]+$/.test(kind) ? kind : `'${kind}'`
  })
  return names.length === 1 ? (names[0] as string) : `{${names.join(', ')}}`
}

function quote(text: string): string {
  return `'${text.replaceAll('\t', '\\t').replaceAll('\n', '\\n').replaceAll('\r', '\\r')}'`
}
