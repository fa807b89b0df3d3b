/** Parses Go literals in templates: strings, characters and numbers. Throws Go's error texts. */
import { goQuote } from '#lib/go/text.ts'

const ESCAPE = /\\(?:x([\da-fA-F]{2})|u([\da-fA-F]{4})|U([\da-fA-F]{8})|([0-7]{3})|([abfnrtv\\'"]))|([^\\])/uy
const NAMED: Readonly<Record<string, string>> = {
  a: '\x07',
  b: '\b',
  f: '\f',
  n: '\n',
  r: '\r',
  t: '\t',
  v: '\v',
}

/** strconv.Unquote, which also accepts single quotes if `quote` is one. */
export function unquoteGo(written: string): string {
  const quote = written[0] ?? ''
  const body = written.slice(1, -1)
  if (quote === '`') return body.replaceAll('\r', '')
  const parts: Buffer[] = []
  for (ESCAPE.lastIndex = 0; ESCAPE.lastIndex < body.length;) {
    const match = ESCAPE.exec(body)
    const part = match === null ? undefined : unescaped(match, quote)
    if (part === undefined) throw new Error('invalid syntax')
    parts.push(part)
  }
  return Buffer.concat(parts).toString()
}

/** Undefined for an invalid character between these quotes. */
function unescaped(match: RegExpExecArray, quote: string): Buffer | undefined {
  const [, byte, short, long, octal, named, plain] = match
  if (plain !== undefined) return plain === quote ? undefined : Buffer.from(plain)
  if (named !== undefined) {
    const isOtherQuote = /["']/.test(named) && named !== quote
    return isOtherQuote ? undefined : Buffer.from(NAMED[named] ?? named)
  }
  const point = Number.parseInt(short ?? long ?? '', 16)
  if (!Number.isNaN(point)) return isScalar(point) ? Buffer.from(String.fromCodePoint(point)) : undefined
  const code = octal === undefined ? Number.parseInt(byte ?? '', 16) : Number.parseInt(octal, 8)
  return code > 255 ? undefined : Buffer.from([code])
}

function isScalar(point: number): boolean {
  return point <= 0x10_ffff && (point < 0xd800 || point >= 0xe000)
}

/** A bigint is an int, a number a float64. */
export function parseGoNumber(text: string): bigint | number {
  const bare = text.replaceAll('_', '')
  const [, sign = '', digits = ''] = /^([+-]?)(.*)$/s.exec(bare) as unknown as string[]
  if (/^(?:0[xX][\da-fA-F]+|0[oO][0-7]+|0[bB][01]+|0[0-7]*|[1-9]\d*)$/.test(digits)) {
    const octal = /^0[0-7]+$/.test(digits) ? `0o${digits.slice(1)}` : digits
    const value = BigInt(octal) * (sign === '-' ? -1n : 1n)
    if (BigInt.asIntN(64, value) !== value) throw new Error(`integer overflow: ${goQuote(text)}`)
    return value
  }
  if (!/^(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?$/.test(digits)) throw new Error(`illegal number syntax: ${goQuote(text)}`)
  // An integer that could not be parsed is out of range.
  if (!/[.eE]/.test(digits)) throw new Error(`integer overflow: ${goQuote(text)}`)
  return Number(bare)
}

export function parseGoRune(text: string): bigint {
  let value: string
  try {
    value = unquoteGo(text)
  } catch {
    throw new Error(`malformed character constant: ${text}`)
  }
  if (Array.from(value).length !== 1) throw new Error(`malformed character constant: ${text}`)
  return BigInt(value.codePointAt(0) as number)
}
