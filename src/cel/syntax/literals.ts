/** Converts the text of a CEL literal to its value. The lexer has checked its form. */
import { Double, intOf, Uint, type Value } from '../value.ts'
import type { LiteralValue } from './ast.ts'
import type { TokenKind } from './lexer.ts'

/** Or what is wrong with it. */
type LiteralResult = LiteralValue | { readonly type: 'invalid'; readonly message: string }

const MAX_INT = 2n ** 63n - 1n
const MAX_UINT = 2n ** 64n - 1n

/** Of a token; undefined if it is no literal. */
export function literalOf(kind: TokenKind, text: string, isNegative: boolean): LiteralResult | undefined {
  switch (kind) {
    case 'NUM_INT':
      return intLiteral(text, isNegative)
    case 'NUM_UINT':
      return uintLiteral(text)
    case 'NUM_FLOAT':
      return doubleLiteral(text, isNegative)
    case 'STRING':
      return stringLiteral(text)
    case 'BYTES':
      return bytesLiteral(text)
    case 'true':
    case 'false':
      return { type: 'bool', value: kind === 'true' }
    case 'null':
      return { type: 'null' }
    default:
      return undefined
  }
}

function intLiteral(digits: string, isNegative: boolean): LiteralResult {
  const magnitude = BigInt(digits)
  const value = isNegative ? -magnitude : magnitude
  return value > MAX_INT || value < -MAX_INT - 1n ? invalid('invalid int literal') : { type: 'int', value }
}

/** With its `u`. */
function uintLiteral(text: string): LiteralResult {
  const value = BigInt(text.slice(0, -1))
  return value > MAX_UINT ? invalid('invalid uint literal') : { type: 'uint', value }
}

function doubleLiteral(text: string, isNegative: boolean): LiteralResult {
  const magnitude = Number(text)
  if (!Number.isFinite(magnitude)) return invalid('invalid double literal')
  return { type: 'double', value: isNegative ? -magnitude : magnitude }
}

function stringLiteral(text: string): LiteralResult {
  const { body, isRaw } = unquote(text)
  if (isRaw || !body.includes('\\')) return { type: 'string', value: body }
  const points = unescape(body)
  if (points.some((point) => !isScalarValue(point))) return invalid('invalid unicode code point')
  // Piece by piece: a call has no room for a hundred thousand arguments.
  return { type: 'string', value: points.map((point) => String.fromCodePoint(point)).join('') }
}

/** With its `b`. Escapes stand for bytes, other characters for their UTF-8. */
function bytesLiteral(text: string): LiteralResult {
  const { body, isRaw } = unquote(text.slice(1))
  if (isRaw) return { type: 'bytes', value: Buffer.from(body) }
  const pieces = body.split(ESCAPE)
  if (pieces.some((piece) => /^\\[uU]/.test(piece))) return invalid('unable to unescape string')
  const bytes = pieces.map((piece) => (piece.startsWith('\\') ? Buffer.of(escaped(piece)) : Buffer.from(piece)))
  return { type: 'bytes', value: new Uint8Array(Buffer.concat(bytes)) }
}

function invalid(message: string): LiteralResult {
  return { type: 'invalid', message }
}

/** All kinds of line ends are one. */
function unquote(text: string): { body: string; isRaw: boolean } {
  const normal = text.replaceAll(/\r\n?/g, '\n')
  const isRaw = normal.startsWith('r') || normal.startsWith('R')
  const quoted = isRaw ? normal.slice(1) : normal
  const isLong = quoted.length >= 6 && (quoted.startsWith("'''") || quoted.startsWith('"""'))
  return { body: isLong ? quoted.slice(3, -3) : quoted.slice(1, -1), isRaw }
}

const ESCAPE = /(\\(?:[xX]..|u.{4}|U.{8}|[0-3]..|.))/

function unescape(body: string): readonly number[] {
  return body
    .split(ESCAPE)
    .flatMap((piece) =>
      piece.startsWith('\\') ? [escaped(piece)] : Array.from(piece, (char) => char.codePointAt(0) as number),
    )
}

const CONTROLS: Readonly<Record<string, number>> = { a: 7, b: 8, t: 9, n: 10, v: 11, f: 12, r: 13 }

function escaped(piece: string): number {
  const letter = piece.charAt(1)
  if (piece.length === 2) return CONTROLS[letter] ?? letter.charCodeAt(0)
  return /[0-3]/.test(letter) ? Number.parseInt(piece.slice(1), 8) : Number.parseInt(piece.slice(2), 16)
}

function isScalarValue(point: number): boolean {
  return point <= 0x10ffff && (point < 0xd800 || point > 0xdfff)
}

/** As expressions evaluate it. */
export function literalValue(literal: LiteralValue): Value {
  switch (literal.type) {
    case 'null':
      return null
    case 'int':
      return intOf(literal.value)
    case 'uint':
      return new Uint(literal.value)
    case 'double':
      return new Double(literal.value)
    default:
      return literal.value
  }
}
