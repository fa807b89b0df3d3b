/**
 * Parses and writes YAML scalars by the rules of go-yaml v2 (go.yaml.in/yaml/v2 2.4, inside sigs.k8s.io/yaml). The
 * writer quotes a string exactly when the reader would take it for another type.
 */

export type ScalarKind = 'null' | 'bool' | 'int' | 'float' | 'timestamp' | 'str'

export interface Scalar {
  readonly kind: ScalarKind
  readonly value: null | boolean | number | bigint | string
}

const WORDS = new Map<string, Scalar>()

function define(scalar: Scalar, ...words: readonly string[]): void {
  for (const word of words) WORDS.set(word, scalar)
}

define({ kind: 'bool', value: true }, 'y', 'Y', 'yes', 'Yes', 'YES', 'true', 'True', 'TRUE', 'on', 'On', 'ON')
define({ kind: 'bool', value: false }, 'n', 'N', 'no', 'No', 'NO', 'false', 'False', 'FALSE', 'off', 'Off', 'OFF')
define({ kind: 'null', value: null }, '', '~', 'null', 'Null', 'NULL')
define({ kind: 'float', value: Number.NaN }, '.nan', '.NaN', '.NAN')
define({ kind: 'float', value: Infinity }, '.inf', '.Inf', '.INF', '+.inf', '+.Inf', '+.INF')
define({ kind: 'float', value: -Infinity }, '-.inf', '-.Inf', '-.INF')

/** Longer than any word or number that resolves; spares long strings the patterns. */
const MAX_RESOLVED = 400

/** The value of a plain scalar without a tag. */
export function resolveScalar(text: string): Scalar {
  const word = WORDS.get(text)
  if (word) return word
  const string: Scalar = { kind: 'str', value: text }
  if (text.length > MAX_RESOLVED || !/^[-+.\d]/.test(text)) return string
  if (isTimestamp(text)) return { kind: 'timestamp', value: text }
  return resolveNumber(text) ?? string
}

function resolveNumber(text: string): Scalar | undefined {
  // A leading point is left to Go's float parser, which knows no underscores.
  const digits = text.startsWith('.') ? text : text.replaceAll('_', '')
  const integer = parseInteger(digits)
  if (integer !== undefined) return { kind: 'int', value: integer }
  if (!/^[-+]?(\.\d+|\d+(\.\d*)?)([eE][-+]?\d+)?$/.test(digits)) return undefined
  const value = Number(digits)
  // A number beyond all doubles stays a string.
  return Number.isFinite(value) ? { kind: 'float', value: value + 0 } : undefined
}

const INTEGER = /^([-+]?)(?:0[xX]([\da-fA-F]+)|0[bB]([01]+)|0[oO]?([0-7]+)|(0|[1-9]\d*))$/

const MIN_INT64 = -(2n ** 63n)
const MAX_UINT64 = 2n ** 64n - 1n
const MAX_INT64 = 2n ** 63n - 1n

/** An int64, or without a sign a uint64, in any of Go's notations; a number where that is exact, a bigint elsewhere. */
function parseInteger(text: string): number | bigint | undefined {
  const match = INTEGER.exec(text)
  if (!match) return undefined
  const [, sign, hex, binary, octal, decimal] = match
  const size = BigInt(hex ? `0x${hex}` : binary ? `0b${binary}` : octal ? `0o${octal}` : (decimal ?? '0'))
  const value = sign === '-' ? -size : size
  if (value < MIN_INT64 || value > (sign ? MAX_INT64 : MAX_UINT64)) return undefined
  return Number.isSafeInteger(Number(value)) ? Number(value) : value
}

const TIMESTAMP =
  /^(\d{4})-(\d{1,2})-(\d{1,2})(?:(?:[Tt](\d{1,2}):(\d{1,2}):(\d{1,2})(?:[.,]\d+)?(?:Z|[-+]\d\d:\d\d))| (\d{1,2}):(\d{1,2}):(\d{1,2})(?:[.,]\d+)?)?$/

function isTimestamp(text: string): boolean {
  const match = TIMESTAMP.exec(text)
  if (!match) return false
  const [year, month, day] = match.slice(1, 4).map(Number) as [number, number, number]
  const [hour, minute, second] = (match[4] === undefined ? match.slice(7, 10) : match.slice(4, 7)).map((part) =>
    Number(part ?? 0),
  ) as [number, number, number]
  // The zeroth day of the next month is the last of this one.
  const days = new Date(Date.UTC(2000 + (year % 400), month, 0)).getUTCDate()
  return month >= 1 && month <= 12 && day >= 1 && day <= days && hour < 24 && minute < 60 && second < 60
}

/** A number as Go's `strconv.FormatFloat(value, 'g', -1, bits)` prints it, in YAML's words for what is not finite. */
export function formatFloat(value: number, bits: 32 | 64): string {
  if (Number.isNaN(value)) return '.nan'
  if (!Number.isFinite(value)) return value > 0 ? '.inf' : '-.inf'
  const [mantissa, exponent] = shortest(value, bits).split('e') as [string, string]
  const power = Number(exponent)
  if (value !== 0 && (power < -4 || power >= 6)) return `${mantissa}e${power < 0 ? '-' : '+'}${pad(Math.abs(power))}`
  return plainNotation(mantissa, power)
}

function pad(power: number): string {
  return String(power).padStart(2, '0')
}

/** The shortest decimal in exponent notation that reads back as the same float of so many bits. */
function shortest(value: number, bits: 32 | 64): string {
  if (bits === 64) return value.toExponential()
  const single = Math.fround(value)
  for (let digits = 0; digits < 9; digits++) {
    const text = single.toExponential(digits)
    if (Math.fround(Number(text)) === single) return text
  }
  return single.toExponential()
}

function plainNotation(mantissa: string, power: number): string {
  const sign = mantissa.startsWith('-') ? '-' : ''
  const digits = mantissa.replace('-', '').replace('.', '')
  if (power < 0) return `${sign}0.${'0'.repeat(-power - 1)}${digits}`
  const whole = digits.slice(0, power + 1).padEnd(power + 1, '0')
  const fraction = digits.slice(power + 1)
  return sign + whole + (fraction === '' ? '' : `.${fraction}`)
}
