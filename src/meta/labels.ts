/**
 * Parses and matches label selectors, such as `app=web,tier in (a,b),!canary`. The grammar and the error texts are
 * those of upstream's apimachinery labels, v0.36.
 */
import { compareText } from '#lib/go/text.ts'

import { aggregateText, fieldErrorText } from './validation/field-error.ts'
import { type FieldError, fieldPath } from './validation/field-path.ts'
import { labelValue, qualifiedName } from './validation/names.ts'

/** `!` means DoesNotExist; `gt` and `lt` are written `>` and `<`. */
export type LabelOperator = 'in' | 'notin' | '=' | '==' | '!=' | 'gt' | 'lt' | 'exists' | '!'

export interface LabelRequirement {
  readonly key: string
  readonly operator: LabelOperator
  /** One for equality and order, none for existence, at least one for sets. */
  readonly values: readonly string[]
}

export interface Selector {
  /** All must match. Sorted by key; several may have the same key. */
  readonly requirements: readonly LabelRequirement[]
  /** Set for the selector that matches nothing. */
  readonly nothing?: true
}

export type Labels = Readonly<Record<string, string>> | undefined

export const everything: Selector = { requirements: [] }
export const nothing: Selector = { requirements: [], nothing: true }

/** Parses a selector; empty text selects everything. Throws upstream's text. */
export function parseSelector(text: string): Selector {
  return createSelector(new Parser(text).parse())
}

/** A selector for objects with all of these labels; keys and values are not validated. */
export function selectorFromLabels(labels: Labels): Selector {
  const entries = Object.entries(labels ?? {})
  return createSelector(entries.map(([key, value]) => ({ key, operator: '=', values: [value] })))
}

/** A selector from requirements in any order. */
export function createSelector(requirements: readonly LabelRequirement[]): Selector {
  if (requirements.length === 0) return everything
  return { requirements: [...requirements].sort((a, b) => compareText(a.key, b.key)) }
}

/** A valid requirement; throws all errors as one text. */
export function createRequirement(key: string, operator: LabelOperator, values: readonly string[]): LabelRequirement {
  const errors = requirementErrors(key, operator, values)
  if (errors.length > 0) throw new Error(aggregateText(errors))
  return { key, operator, values }
}

/** The errors of one, with paths relative to the requirement. */
export function requirementErrors(key: string, operator: LabelOperator, values: readonly string[]): FieldError[] {
  const errors: FieldError[] = []
  const complaints = qualifiedName(key)
  if (complaints.length > 0) errors.push(fieldPath('key').invalid(key, complaints.join('; ')))
  errors.push(...operatorErrors(operator, values))
  for (const [at, value] of values.entries()) {
    const wrong = labelValue(value)
    if (wrong.length > 0) errors.push(fieldPath('values').index(at).key(key).invalid(value, wrong.join('; ')))
  }
  return errors
}

export function isEverything(selector: Selector): boolean {
  return selector.nothing === undefined && selector.requirements.length === 0
}

export function matchesLabels(selector: Selector, labels: Labels): boolean {
  if (selector.nothing) return false
  for (const requirement of selector.requirements) if (!meets(requirement, labels)) return false
  return true
}

/** True if one requirement matches. An absent label matches `!=` and `notin`. */
export function meets({ key, operator, values }: LabelRequirement, labels: Labels): boolean {
  const value = labels !== undefined && Object.hasOwn(labels, key) ? labels[key] : undefined
  return operators[operator].meets(value, values)
}

/** The canonical text, which `parseSelector` parses to the same selector. Empty for everything and for nothing. */
export function selectorText({ requirements }: Selector): string {
  return requirements.map(requirementText).join(',')
}

export function requirementText({ key, operator, values }: LabelRequirement): string {
  const list = values.length > 1 ? [...values].sort(compareText).join(',') : (values[0] ?? '')
  return operators[operator].text(key, list)
}

/** The only value that a label may have, if its first requirement fixes it. */
export function requiredLabel(selector: Selector, key: string): string | undefined {
  const requirement = selector.requirements.find((one) => one.key === key)
  if (requirement === undefined || !['=', '==', 'in'].includes(requirement.operator)) return undefined
  return requirement.values.length === 1 ? requirement.values[0] : undefined
}

/** Labels as `a=b,c=d` sorted by key, `<none>` without any. */
export function labelsText(labels: Labels): string {
  const pairs = Object.entries(labels ?? {}).map(([key, value]) => `${key}=${value}`)
  return pairs.length === 0 ? '<none>' : pairs.sort(compareText).join(',')
}

interface OperatorRule {
  readonly meets: (value: string | undefined, values: readonly string[]) => boolean
  readonly text: (key: string, list: string) => string
  /** True if operators of this family may have that many values. */
  readonly fits: (count: number) => boolean
  readonly misfit: string
}

const sets = {
  fits: (count: number) => count > 0,
  misfit: "for 'in', 'notin' operators, values set can't be empty",
}
const equality = {
  fits: (count: number) => count === 1,
  misfit: 'exact-match compatibility requires one single value',
}
const existence = {
  fits: (count: number) => count === 0,
  misfit: 'values set must be empty for exists and does not exist',
}
const order = {
  fits: (count: number) => count === 1,
  misfit: "for 'Gt', 'Lt' operators, exactly one value is required",
}

const isOneOf: OperatorRule['meets'] = (value, values) => value !== undefined && isAmong(value, values)
const isNoneOf: OperatorRule['meets'] = (value, values) => value === undefined || !isAmong(value, values)

/** Up to this number a linear search is as fast as a set. */
const FEW_VALUES = 16
const setOf = new WeakMap<readonly string[], ReadonlySet<string>>()

/** A selector may have thousands of values, and is matched against every object. */
function isAmong(value: string, values: readonly string[]): boolean {
  if (values.length <= FEW_VALUES) return values.includes(value)
  const set = setOf.get(values) ?? new Set(values)
  setOf.set(values, set)
  return set.has(value)
}

/** In the order of messages: operators with a value first. */
const operators: Readonly<Record<LabelOperator, OperatorRule>> = {
  in: { ...sets, meets: isOneOf, text: (key, list) => `${key} in (${list})` },
  notin: { ...sets, meets: isNoneOf, text: (key, list) => `${key} notin (${list})` },
  '=': { ...equality, meets: isOneOf, text: (key, list) => `${key}=${list}` },
  '==': { ...equality, meets: isOneOf, text: (key, list) => `${key}==${list}` },
  '!=': { ...equality, meets: isNoneOf, text: (key, list) => `${key}!=${list}` },
  gt: { ...order, meets: (value, [bound]) => compareIntegers(value, bound) > 0, text: (key, list) => `${key}>${list}` },
  lt: { ...order, meets: (value, [bound]) => compareIntegers(value, bound) < 0, text: (key, list) => `${key}<${list}` },
  exists: { ...existence, meets: (value) => value !== undefined, text: (key) => key },
  '!': { ...existence, meets: (value) => value === undefined, text: (key) => `!${key}` },
}

function operatorErrors(operator: LabelOperator, values: readonly string[]): FieldError[] {
  if (!Object.hasOwn(operators, operator)) return [fieldPath('operator').notSupported(operator, Object.keys(operators))]
  const { fits, misfit } = operators[operator]
  const errors = fits(values.length) ? [] : [fieldPath('values').invalid(values.length === 0 ? null : values, misfit)]
  if (operator !== 'gt' && operator !== 'lt') return errors
  return [...errors, ...values.flatMap((value, at) => (int64(value) === undefined ? [notInteger(value, at)] : []))]
}

function notInteger(value: string, at: number): FieldError {
  return fieldPath('values').index(at).invalid(value, "for 'Gt', 'Lt' operators, the value must be an integer")
}

/** Zero, so neither greater nor less, if one of them is no int64. */
function compareIntegers(a: string | undefined, b: string | undefined): number {
  const left = int64(a ?? '')
  const right = int64(b ?? '')
  if (left === undefined || right === undefined || left === right) return 0
  return left > right ? 1 : -1
}

/** Label values have at most 63 bytes, so the conversion is cheap. */
function int64(text: string): bigint | undefined {
  if (!/^[+-]?[0-9]{1,63}$/.test(text)) return undefined
  const value = BigInt(text.startsWith('+') ? text.slice(1) : text)
  return BigInt.asIntN(64, value) === value ? value : undefined
}

interface Token {
  readonly kind: 'word' | 'symbol' | 'end'
  readonly text: string
}

const end: Token = { kind: 'end', text: '' }
/** `in` and `notin` are operators only in operator position; elsewhere they are keys and values. */
const operatorOf = new Map<string, LabelOperator>([
  ['in', 'in'],
  ['notin', 'notin'],
  ['=', '='],
  ['==', '=='],
  ['!=', '!='],
  ['>', 'gt'],
  ['<', 'lt'],
])

const binary = Object.keys(operators).slice(0, -2)

/** Splits a selector into words and symbols. A NUL ends it, as in upstream. */
function scan(text: string): Token[] {
  const tokens: Token[] = []
  const pattern = /[ \t\r\n]*(?:(==|!=|[=!(),<>])\0?|([^=!(),<> \t\r\n\0]+)\0?|\0)/y
  for (let match = pattern.exec(text); match !== null; match = pattern.exec(text)) {
    const [, symbol, word] = match
    if (symbol !== undefined) tokens.push({ kind: 'symbol', text: symbol })
    else if (word !== undefined) tokens.push({ kind: 'word', text: word })
    else break
  }
  tokens.push(end)
  return tokens
}

class Parser {
  readonly #tokens: readonly Token[]
  #at = 0

  constructor(text: string) {
    this.#tokens = scan(text)
  }

  parse(): LabelRequirement[] {
    const requirements: LabelRequirement[] = []
    for (;;) {
      const token = this.#peek()
      if (token.kind === 'end') return requirements
      if (!startsRequirement(token)) {
        throw new Error(`found '${token.text}', expected: !, identifier, or 'end of string'`)
      }
      requirements.push(this.#wrapped())
      const after = this.#next()
      if (after.kind === 'end') return requirements
      if (after.text !== ',') throw new Error(`found '${after.text}', expected: ',' or 'end of string'`)
      const following = this.#peek()
      if (!startsRequirement(following)) {
        throw new Error(`found '${following.text}', expected: identifier after ','`)
      }
    }
  }

  #wrapped(): LabelRequirement {
    try {
      return this.#requirement()
    } catch (cause) {
      throw new Error(`unable to parse requirement: ${(cause as Error).message}`, { cause })
    }
  }

  #requirement(): LabelRequirement {
    const negated = this.#peek().text === '!'
    if (negated) this.#at++
    const key = this.#next()
    if (key.kind !== 'word') throw new Error(`found '${key.text}', expected: identifier`)
    const complaints = qualifiedName(key.text)
    // Upstream has no path for the key here.
    if (complaints.length > 0)
      throw new Error(fieldErrorText(fieldPath('<nil>').invalid(key.text, complaints.join('; '))))
    if (negated) return createRequirement(key.text, '!', [])
    const following = this.#peek()
    if (following.kind === 'end' || following.text === ',') return createRequirement(key.text, 'exists', [])
    const token = this.#next()
    const operator = operatorOf.get(token.text)
    if (operator === undefined) {
      throw new Error(`found '${token.text}', expected: ${binary.join(', ')}`)
    }
    const values = operator === 'in' || operator === 'notin' ? this.#values() : [this.#value()]
    return createRequirement(key.text, operator, values)
  }

  /** One value, possibly empty: `a=` matches the empty value. */
  #value(): string {
    const token = this.#peek()
    if (token.kind === 'end' || token.text === ',') return ''
    this.#at++
    if (token.kind !== 'word') throw new Error(`found '${token.text}', expected: identifier`)
    return token.text
  }

  /** A list in parentheses; a missing value is empty. */
  #values(): string[] {
    const open = this.#next()
    if (open.text !== '(') throw new Error(`found '${open.text}' expected: '('`)
    const first = this.#peek()
    if (first.kind !== 'word' && first.text !== ',' && first.text !== ')') {
      throw new Error(`found '${first.text}', expected: ',', ')' or identifier`)
    }
    const values = new Set<string>()
    for (;;) {
      const token = this.#peek()
      if (token.kind === 'word') this.#at++
      else if (token.text !== ',' && token.text !== ')') {
        throw new Error(`found '${token.text}', expected: ',', or identifier`)
      }
      values.add(token.kind === 'word' ? token.text : '')
      const separator = this.#next()
      if (separator.text === ')') return [...values].sort(compareText)
      if (separator.text !== ',') throw new Error(`found '${separator.text}', expected: ',' or ')'`)
    }
  }

  #peek(): Token {
    return this.#tokens[this.#at] ?? end
  }

  #next(): Token {
    const token = this.#peek()
    this.#at++
    return token
  }
}

function startsRequirement(token: Token): boolean {
  return token.kind === 'word' || token.text === '!'
}
