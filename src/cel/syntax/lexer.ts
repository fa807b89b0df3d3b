/**
 * Splits the text of a CEL expression into tokens by cel-go's rules. The longest match wins, and characters that
 * begin no token are reported and skipped.
 */
import type { Offset } from './ast.ts'
import { type Finding, offsets } from './source.ts'

/** In the order of messages. Those in capitals have separate texts, the others are their text. */
export const TOKEN_KINDS = [
  'EOF',
  '==',
  '!=',
  'in',
  '<',
  '<=',
  '>=',
  '>',
  '&&',
  '||',
  '[',
  ']',
  '{',
  '}',
  '(',
  ')',
  '.',
  ',',
  '-',
  '!',
  '?',
  ':',
  '+',
  '*',
  '/',
  '%',
  'true',
  'false',
  'null',
  'NUM_FLOAT',
  'NUM_INT',
  'NUM_UINT',
  'STRING',
  'BYTES',
  'IDENTIFIER',
  'ESC_IDENTIFIER',
] as const

export type TokenKind = (typeof TOKEN_KINDS)[number]

/** Names that no variable or function has. */
export const RESERVED_WORDS: ReadonlySet<string> = new Set(
  'as break const continue else false for function if import in let loop package namespace null return true var void while'.split(
    ' ',
  ),
)

export interface Token {
  readonly kind: TokenKind
  /** In units of the string. */
  readonly start: number
  readonly end: number
  readonly at: Offset
}

export interface Tokens {
  /** Ends with EOF. */
  readonly tokens: readonly Token[]
  readonly findings: readonly Finding[]
}

export function tokenize(source: string): Tokens {
  const offset = offsets(source)
  const tokens: Token[] = []
  const findings: Finding[] = []
  let start = 0
  while (start < source.length) {
    const match = matchAt(source, start)
    if (match.kind === undefined) {
      const end = endOfUnrecognized(source, match.end)
      findings.push({
        at: offset(start),
        message: `Syntax error: token recognition error at: '${source.slice(start, end)}'`,
      })
      start = end
    } else {
      if (match.kind !== 'hidden') tokens.push({ kind: match.kind, start, end: match.end, at: offset(start) })
      start = match.end
    }
  }
  tokens.push({ kind: 'EOF', start, end: start, at: offset(start) })
  return { tokens, findings }
}

/** The text of a range that begins with a token, without what no token begins with. */
export function recognizedText(source: string, start: number, end: number): string {
  let text = ''
  for (let at = start; at < end;) {
    const match = matchAt(source, at)
    const next = match.kind === undefined ? endOfUnrecognized(source, match.end) : match.end
    if (match.kind !== undefined) text += source.slice(at, next)
    at = next
  }
  return text
}

/** With the character that fits nothing. */
function endOfUnrecognized(source: string, misfit: number): number {
  return Math.min(misfit + ((source.codePointAt(misfit) ?? 0) > 0xffff ? 2 : 1), source.length)
}

/** Without a kind nothing matches, and `end` is the first character that fits no token. */
interface Match {
  readonly kind: TokenKind | 'hidden' | undefined
  readonly end: number
}

const OPERATORS: ReadonlySet<string> = new Set(TOKEN_KINDS.filter((kind) => /^[^\w]+$/.test(kind)))
const KEYWORDS: ReadonlySet<string> = new Set<TokenKind>(['in', 'true', 'false', 'null'])

function matchAt(text: string, start: number): Match {
  const first = text.charAt(start)
  if (isWordStart(first)) return matchWord(text, start)
  if (isDigit(first) || (first === '.' && isDigit(text.charAt(start + 1)))) return matchNumber(text, start)
  if (first === '"' || first === "'") {
    const string = matchString(text, start, false)
    return { kind: string.matches ? 'STRING' : undefined, end: string.end }
  }
  if (isSpace(first)) return { kind: 'hidden', end: skip(text, start, isSpace) }
  if (first === '/' && text.charAt(start + 1) === '/') return { kind: 'hidden', end: endOfLine(text, start) }
  if (first === '`') return matchEscaped(text, start)
  const two = text.slice(start, start + 2)
  if (OPERATORS.has(two)) return { kind: two as TokenKind, end: start + two.length }
  if (OPERATORS.has(first)) return { kind: first as TokenKind, end: start + 1 }
  return { kind: undefined, end: '=&|'.includes(first) ? start + 1 : start }
}

function matchWord(text: string, start: number): Match {
  const isBytes = 'bB'.includes(text.charAt(start))
  const afterBytes = isBytes ? start + 1 : start
  const isRaw = 'rR'.includes(text.charAt(afterBytes)) && afterBytes < text.length
  const quote = isRaw ? afterBytes + 1 : afterBytes
  if (quote > start && (text.charAt(quote) === '"' || text.charAt(quote) === "'")) {
    const string = matchString(text, quote, isRaw)
    if (string.matches) return { kind: isBytes ? 'BYTES' : 'STRING', end: string.end }
  }
  const end = skip(text, start, isWordPart)
  const word = text.slice(start, end)
  return { kind: KEYWORDS.has(word) ? (word as TokenKind) : 'IDENTIFIER', end }
}

function matchNumber(text: string, start: number): Match {
  const hex = text.startsWith('0x', start) ? skip(text, start + 2, isHexDigit) : 0
  if (hex > start + 2) return unsigned(text, hex)
  const whole = skip(text, start, isDigit)
  const hasFraction = text.charAt(whole) === '.' && isDigit(text.charAt(whole + 1))
  const fraction = hasFraction ? skip(text, whole + 1, isDigit) : whole
  const exponent = endOfExponent(text, fraction)
  return exponent > whole ? { kind: 'NUM_FLOAT', end: exponent } : unsigned(text, whole)
}

function unsigned(text: string, end: number): Match {
  const isUnsigned = text.charAt(end) === 'u' || text.charAt(end) === 'U'
  return isUnsigned ? { kind: 'NUM_UINT', end: end + 1 } : { kind: 'NUM_INT', end }
}

function endOfExponent(text: string, at: number): number {
  if (text.charAt(at) !== 'e' && text.charAt(at) !== 'E') return at
  const digits = text.charAt(at + 1) === '+' || text.charAt(at + 1) === '-' ? at + 2 : at + 1
  const end = skip(text, digits, isDigit)
  return end > digits ? end : at
}

function matchEscaped(text: string, start: number): Match {
  const end = skip(text, start + 1, (char) => isWordPart(char) || (char !== '' && '.-/ '.includes(char)))
  return end > start + 1 && text.charAt(end) === '`'
    ? { kind: 'ESC_IDENTIFIER', end: end + 1 }
    : { kind: undefined, end }
}

interface StringMatch {
  readonly matches: boolean
  readonly end: number
}

/** From its quote. The text of three quotes that are never closed is the empty string and a quote. */
function matchString(text: string, start: number, isRaw: boolean): StringMatch {
  const quote = text.charAt(start)
  if (text.startsWith(quote.repeat(3), start)) {
    const long = scanString(text, start + 3, { close: quote.repeat(3), isRaw, isLong: true })
    return long.matches ? long : { matches: true, end: start + 2 }
  }
  return scanString(text, start + 1, { close: quote, isRaw, isLong: false })
}

interface StringForm {
  readonly close: string
  readonly isRaw: boolean
  readonly isLong: boolean
}

function scanString(text: string, start: number, { close, isRaw, isLong }: StringForm): StringMatch {
  let at = start
  while (at < text.length) {
    if (text.startsWith(close, at)) return { matches: true, end: at + close.length }
    const char = text.charAt(at)
    if (!isLong && (char === '\n' || char === '\r')) break
    if (char !== '\\' || isRaw) {
      at++
      continue
    }
    const escape = scanEscape(text, at)
    if (!escape.matches) return escape
    at = escape.end
  }
  return { matches: false, end: at }
}

/** After the letter of an escape: how many characters, and which. */
const ESCAPES: Readonly<Record<string, readonly [count: number, isPart: (char: string) => boolean]>> = {
  x: [2, isHexDigit],
  X: [2, isHexDigit],
  u: [4, isHexDigit],
  U: [8, isHexDigit],
  ...Object.fromEntries(Array.from('0123', (digit) => [digit, [2, isOctalDigit]])),
  ...Object.fromEntries(Array.from('abfnrtv"\'\\?`', (letter) => [letter, [0, isDigit]])),
}

function scanEscape(text: string, backslash: number): StringMatch {
  const escape = ESCAPES[text.charAt(backslash + 1)]
  if (escape === undefined) return { matches: false, end: backslash + 1 }
  const [count, isPart] = escape
  const start = backslash + 2
  const end = Math.min(skip(text, start, isPart), start + count)
  return { matches: end === start + count, end }
}

function skip(text: string, start: number, isPart: (char: string) => boolean): number {
  let at = start
  while (at < text.length && isPart(text.charAt(at))) at++
  return at
}

function endOfLine(text: string, start: number): number {
  const end = text.indexOf('\n', start)
  return end === -1 ? text.length : end
}

function isSpace(char: string): boolean {
  return char === ' ' || char === '\n' || char === '\t' || char === '\r' || char === '\f'
}

function isDigit(char: string): boolean {
  return char >= '0' && char <= '9'
}

function isOctalDigit(char: string): boolean {
  return char >= '0' && char <= '7'
}

function isHexDigit(char: string): boolean {
  return isDigit(char) || (char >= 'a' && char <= 'f') || (char >= 'A' && char <= 'F')
}

function isWordStart(char: string): boolean {
  return (char >= 'a' && char <= 'z') || (char >= 'A' && char <= 'Z') || char === '_'
}

function isWordPart(char: string): boolean {
  return isWordStart(char) || isDigit(char)
}
