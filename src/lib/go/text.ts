/**
 * Formats values as Go does with `%q`, `%v` and json.Marshal, because upstream's error texts contain them. Also has
 * Go's string length (UTF-8 bytes), string order (code points) and test for printable characters.
 */
import { Buffer } from 'node:buffer'

const plain = /^[ !#-[\]-~]*$/
const printable = /^[\p{L}\p{M}\p{N}\p{P}\p{S} ]$/u
const named = new Map([
  ['\x07', '\\a'],
  ['\b', '\\b'],
  ['\f', '\\f'],
  ['\n', '\\n'],
  ['\r', '\\r'],
  ['\t', '\\t'],
  ['\v', '\\v'],
])

/** The characters that `%q` escapes, except quotes and backslashes. */
const unprintable = /[^\p{L}\p{M}\p{N}\p{P}\p{S} ]/gu

/** `%q`: double quotes, with everything unprintable escaped. Texts may be megabytes: whole runs are passed on as they are. */
export function goQuote(text: string): string {
  if (plain.test(text)) return `"${text}"`
  let escaped = escapeQuotes(text)
  for (const [char, escape] of named) if (escaped.includes(char)) escaped = escaped.replaceAll(char, escape)
  return `"${escaped.replace(unprintable, escapeRune)}"`
}

function escapeQuotes(text: string): string {
  const escaped = text.includes('\\') ? text.replaceAll('\\', '\\\\') : text
  return escaped.includes('"') ? escaped.replaceAll('"', '\\"') : escaped
}

/** A time or duration is never longer; what is beyond this is not shown, unlike upstream's. */
const MAX_TIME_TEXT = 4096

/** The quotes of Go's time package: like `%q`, but every byte that is no printable ASCII as hex. */
export function goTimeQuote(text: string): string {
  if (text.length > MAX_TIME_TEXT) return `${goTimeQuote(text.slice(0, MAX_TIME_TEXT))}...`
  const bytes = Buffer.from(escapeQuotes(text)).toString('latin1')
  return `"${bytes.replace(/[^ -\x7f]/g, (byte) => `\\x${hex(byte.charCodeAt(0), 2)}`)}"`
}

/** `%#v` of a list of strings. */
export function goStrings(texts: readonly string[]): string {
  return `[]string{${texts.map(goQuote).join(', ')}}`
}

/** Whether Go would print this one code point: letters, marks, numbers, punctuation, symbols and the ASCII space. */
export function isPrintable(char: string): boolean {
  return printable.test(char)
}

/**
 * json.Marshal of a JSON-shaped value: `<`, `>` and `&` escaped, bigints as numbers, nothing as `null`. Keys keep the
 * order they have: Go sorts those of maps only, and shape does not tell a map from a struct.
 */
export function goJson(value: unknown): string {
  const text = jsonText(value)
  if (text === undefined) return 'null'
  return text.replace(/[<>&\u2028\u2029]/g, (char) => `\\u${hex(char.charCodeAt(0), 4)}`)
}

/** A replacer costs several times as much as the rest, and only bigints need one. */
function jsonText(value: unknown): string | undefined {
  try {
    return JSON.stringify(value)
  } catch {
    return JSON.stringify(value, (_key, part: unknown) => (typeof part === 'bigint' ? exactly(part) : part))
  }
}

/** `%v` of a number: integers in full, fractions and what only a double can hold as `%g`. */
export function goNumber(value: number | bigint): string {
  if (typeof value === 'bigint' || Number.isSafeInteger(value)) return BigInt(value).toString()
  return goDouble(value)
}

/** `%v` of a double, also of a whole one: `1e+06`. */
export function goDouble(value: number): string {
  if (Number.isNaN(value)) return 'NaN'
  if (!Number.isFinite(value)) return value > 0 ? '+Inf' : '-Inf'
  const [mantissa, exponent] = value.toExponential().split('e') as [string, string]
  if (Number(exponent) >= -4 && Number(exponent) < 6) return value.toString()
  return `${mantissa}e${exponent[0]}${exponent.slice(1).padStart(2, '0')}`
}

/** Order of UTF-8 bytes, which is the order of code points and not the order of `<`. */
export function compareText(a: string, b: string): number {
  const common = Math.min(a.length, b.length)
  for (let at = 0; at < common; at++) {
    const difference = rank(a.charCodeAt(at)) - rank(b.charCodeAt(at))
    if (difference !== 0) return difference
  }
  return a.length - b.length
}

const surrogate = /[\ud800-\udfff]/

/** Sorts the list itself by `compareText`. Without surrogates that is the order of the runtime, which sorts much faster. */
export function sortTexts<T extends string>(texts: T[]): T[] {
  if (texts.length < 2) return texts
  return texts.some((text) => surrogate.test(text)) ? texts.sort(compareText) : texts.sort()
}

/** Length in UTF-8, which is what every limit of the API counts. */
export function byteLength(text: string): number {
  return Buffer.byteLength(text)
}

/**
 * strconv.ParseInt in base 10. Throws its error text, with the name of the Go function that was called. A value past
 * 2^53 is rounded to the nearest number.
 */
export function parseGoInt(text: string, name = 'ParseInt', bits = 64): number {
  if (!/^[+-]?[0-9]+$/.test(text)) throw new Error(`strconv.${name}: parsing ${goQuote(text)}: invalid syntax`)
  const limit = 2n ** BigInt(bits - 1)
  // No int64 has more digits than this; parsing megabytes of them would take a while.
  const digits = text.replace(/^[+-]?0*/, '').length
  const value = digits > 20 ? limit : BigInt(text.startsWith('+') ? text.slice(1) : text)
  if (value >= limit || value < -limit) {
    throw new Error(`strconv.${name}: parsing ${goQuote(text)}: value out of range`)
  }
  return Number(value)
}

/** TypeScript's library does not know this method yet. */
function exactly(value: bigint): unknown {
  return (JSON as unknown as { rawJSON(text: string): unknown }).rawJSON(value.toString())
}

/** Surrogates stand for the code points above all others, though their own numbers lie below U+E000. */
function rank(unit: number): number {
  return unit >= 0xd800 && unit < 0xe000 ? unit + 0x10000 : unit
}

function escapeRune(char: string): string {
  const rune = char.codePointAt(0) as number
  if (rune < 0x20 || rune === 0x7f) return `\\x${hex(rune, 2)}`
  if (rune >= 0xd800 && rune < 0xe000) return '\\ufffd'
  return rune < 0x10000 ? `\\u${hex(rune, 4)}` : `\\U${hex(rune, 8)}`
}

function hex(value: number, width: number): string {
  return value.toString(16).padStart(width, '0')
}
