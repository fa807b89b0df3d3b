/**
 * Implements `'%d of %s'.format([1, 'x'])`. As in version 2 of cel-go's library, doubles are formatted for the locale
 * en_US.
 */
import { compareText, goQuote } from '#lib/go/text.ts'

import { spendEffort } from '../effort.ts'
import {
  Double,
  Failure,
  ListValue,
  MapValue,
  TypeValue,
  Uint,
  isInt,
  typeNameOf,
  type Result,
  type Value,
} from '../value.ts'
import { toText } from './conversion.ts'
import { fixedText, groupedText, scientificText } from './decimal.ts'
import { Duration, Timestamp } from './time.ts'

class Refusal extends Error {}

/** A failure with upstream's text where a clause makes no sense, or not with its argument. */
export function formatText(format: string, args: ListValue): Result {
  try {
    return interpolate(format, args)
  } catch (error) {
    if (error instanceof Refusal) return new Failure(error.message)
    throw error
  }
}

function interpolate(format: string, args: ListValue): string {
  let text = ''
  let used = 0
  for (let at = 0; at < format.length;) {
    const next = format.indexOf('%', at)
    if (next < 0) return text + format.slice(at)
    text += format.slice(at, next)
    if (format.charAt(next + 1) === '%') {
      text += '%'
      at = next + 2
      continue
    }
    if (used >= args.size) throw new Refusal(`index ${used} out of range`)
    if (next + 1 >= format.length) throw new Refusal('unexpected end of string')
    const clause = parseClause(format, next + 1)
    const arg = args.at(used++)
    if (arg instanceof Failure) throw new Refusal(arg.message)
    text += clause.write(arg, clause.precision)
    at = clause.end
    spendEffort(text.length)
  }
  return text
}

type Write = (value: Value, precision: number | undefined) => string

interface Clause {
  readonly write: Write
  readonly precision: number | undefined
  readonly end: number
}

function parseClause(format: string, start: number): Clause {
  const broken = (problem: string): Refusal => new Refusal(`could not parse formatting clause: ${problem}`)
  let at = start
  let precision: number | undefined
  if (format.charAt(at) === '.') {
    const digits = /^[0-9]*/.exec(format.slice(at + 1))?.[0] ?? ''
    at += 1 + digits.length
    if (at >= format.length) throw broken('error while parsing precision: could not find end of precision specifier')
    if (digits === '' || BigInt(digits) >= 2n ** 63n) {
      const why = digits === '' ? 'invalid syntax' : 'value out of range'
      const doing = 'error while parsing precision: error while converting precision to integer'
      throw broken(`${doing}: strconv.Atoi: parsing "${digits}": ${why}`)
    }
    precision = Number(digits)
  }
  const letter = format.charAt(at)
  const write = verbs[letter]
  if (write !== undefined) return { write, precision, end: at + 1 }
  // Upstream looks at bytes.
  const byte = Buffer.from(format.slice(at))[0] ?? 0
  throw broken(`unrecognized formatting clause "${String.fromCharCode(byte)}"`)
}

const complain = (rule: string, value: Value): Refusal =>
  new Refusal(`error during formatting: ${rule}, was given ${typeNameOf(value)}`)

/** Unsigned 64 bits, with a separate sign if the int is negative. */
const inBase = (value: number | bigint | Uint, base: number): string =>
  (value instanceof Uint ? value.value : value).toString(base)

function hex(value: Value): string {
  if (isInt(value) || value instanceof Uint) return inBase(value, 16)
  if (typeof value === 'string') return Buffer.from(value).toString('hex')
  if (value instanceof Uint8Array) return Buffer.from(value).toString('hex')
  throw complain('only integers, byte buffers, and strings can be formatted as hex', value)
}

function binary(value: Value): string {
  if (typeof value === 'boolean') return value ? '1' : '0'
  if (isInt(value) || value instanceof Uint) return inBase(value, 2)
  throw complain('only integers and bools can be formatted as binary', value)
}

function octal(value: Value): string {
  if (isInt(value) || value instanceof Uint) return inBase(value, 8)
  throw complain('octal clause can only be used on integers', value)
}

function decimal(value: Value): string {
  if (isInt(value) || value instanceof Uint) return inBase(value, 10)
  throw complain('decimal clause can only be used on integers', value)
}

/** Doubles, and the names of those that have no digits. */
function numberOf(value: Value, rule: string): number {
  if (value instanceof Double) return value.value
  if (value === 'NaN' || value === 'Infinity' || value === '-Infinity') return Number(value)
  throw complain(rule, value)
}

const withoutDigits = (value: number): string => (Number.isNaN(value) ? 'NaN' : value > 0 ? '\u221e' : '-\u221e')

function fixed(value: Value, precision = 6): string {
  const number = numberOf(value, 'fixed-point clause can only be used on doubles')
  // The printer upstream uses keeps the precision in a byte.
  return Number.isFinite(number) ? groupedText(number, precision & 0xff) : withoutDigits(number)
}

/** The precision is taken for a width. */
function scientific(value: Value, precision = 6): string {
  const number = numberOf(value, 'scientific clause can only be used on doubles')
  const text = Number.isFinite(number) ? scientificText(number) : withoutDigits(number)
  return text.padStart(Math.min(precision, 1_000_000))
}

const PRINTABLE =
  'string clause can only be used on strings, bools, bytes, ints, doubles, maps, lists, types, durations, and timestamps'

function string(value: Value): string {
  if (value instanceof ListValue) return listText(value)
  if (value instanceof MapValue) return mapText(value)
  return scalarText(value)
}

function scalarText(value: Value): string {
  const text = isScalar(value) ? toText(value) : undefined
  if (text === undefined) throw complain(PRINTABLE, value)
  if (text instanceof Failure)
    throw new Refusal(`error during formatting: could not convert argument ${goQuote(text.message)} to string`)
  return text as string
}

const isScalar = (value: Value): boolean =>
  value === null ||
  typeof value !== 'object' ||
  value instanceof Double ||
  value instanceof Uint ||
  value instanceof Uint8Array ||
  value instanceof Timestamp ||
  value instanceof Duration ||
  value instanceof TypeValue

/** Inside of lists and maps values are written as literals. */
function literal(value: Value): string {
  if (typeof value === 'string') return quoted(value)
  if (value instanceof Double) {
    if (Number.isFinite(value.value)) return fixedText(value.value, 6)
    return goQuote(Number.isNaN(value.value) ? 'NaN' : value.value > 0 ? '+Inf' : '-Inf')
  }
  if (value instanceof Uint8Array) return `b${goQuote(scalarText(value))}`
  if (value instanceof Timestamp) return `timestamp(${goQuote(scalarText(value))})`
  if (value instanceof Duration) return `duration(${goQuote(scalarText(value))})`
  if (value instanceof ListValue) return listText(value)
  if (value instanceof MapValue) return mapText(value)
  if (isScalar(value)) return scalarText(value)
  throw new Refusal(`error during formatting: no formatting function for ${typeNameOf(value)}`)
}

function quoted(text: string): string {
  spendEffort(text.length)
  return goQuote(text)
}

function listText(list: ListValue): string {
  spendEffort(60 * list.size)
  return `[${Array.from({ length: list.size }, (_, at) => literal(list.at(at) as Value)).join(', ')}]`
}

function mapText(map: MapValue): string {
  spendEffort(200 * map.size)
  const pairs = Array.from(map.keys(), (key) => {
    if (typeof key === 'object' && !(key instanceof Uint)) {
      throw new Refusal(`error during formatting: no formatting function for map key of type ${typeNameOf(key)}`)
    }
    return [literal(key), literal(map.get(key) as Value)] as const
  })
  const sorted = pairs.sort(([a], [b]) => compareText(a, b))
  return `{${sorted.map(([key, value]) => `${key}:${value}`).join(', ')}}`
}

const verbs: Readonly<Record<string, Write>> = {
  s: string,
  d: decimal,
  f: fixed,
  e: scientific,
  b: binary,
  x: hex,
  X: (value) => hex(value).toUpperCase(),
  o: octal,
}
