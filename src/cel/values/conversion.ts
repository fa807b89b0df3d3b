/** Converts CEL values between types, as `int('1')` or `string(1.5)`, and to text. */
import { goNumber } from '#lib/go/text.ts'

import { spendEffort } from '../effort.ts'
import {
  Double,
  Failure,
  MAX_INT64,
  MAX_UINT64,
  MIN_INT64,
  TypeValue,
  Uint,
  intOf,
  typeNameOf,
  type Result,
  type Value,
} from '../value.ts'
import { Duration, Timestamp, durationSecondsText, parseGoDuration, parseTimestamp, timestampText } from './time.ts'

const INT_OVERFLOW = new Failure('integer overflow')
const UINT_OVERFLOW = new Failure('unsigned integer overflow')

function unconvertible(value: Value, to: string): Failure {
  return new Failure(`type conversion error from '${typeNameOf(value)}' to '${to}'`)
}

/** Digits of no more than 64 bits; anything longer is out of range whatever it says. */
const decimal = /^([+-]?)0*([0-9]{1,20})$/

export function stringToInt(text: string): Result {
  spendEffort(text.length)
  const match = decimal.exec(text)
  if (match === null) return unconvertible(text, 'int')
  const value = match[1] === '-' ? -BigInt(match[2] as string) : BigInt(match[2] as string)
  return value > MAX_INT64 || value < MIN_INT64 ? unconvertible(text, 'int') : intOf(value)
}

export function stringToUint(text: string): Result {
  spendEffort(text.length)
  const match = /^0*([0-9]{1,20})$/.exec(text)
  const value = match === null ? MAX_UINT64 + 1n : BigInt(match[1] as string)
  return value > MAX_UINT64 ? unconvertible(text, 'uint') : new Uint(value)
}

export function doubleToInt({ value }: Double): Result {
  if (!Number.isFinite(value) || value <= -(2 ** 63) || value >= 2 ** 63) return INT_OVERFLOW
  const whole = Math.trunc(value)
  return Number.isSafeInteger(whole) ? whole + 0 : BigInt(whole)
}

export function doubleToUint({ value }: Double): Result {
  if (!Number.isFinite(value) || value < 0 || value >= 2 ** 64) return UINT_OVERFLOW
  return new Uint(BigInt(Math.trunc(value)))
}

export function intToUint(value: number | bigint): Result {
  return value < 0 ? UINT_OVERFLOW : new Uint(BigInt(value))
}

export function uintToInt({ value }: Uint): Result {
  return value > MAX_INT64 ? INT_OVERFLOW : intOf(value)
}

const float = /^[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?$/
const hexFloat = /^([+-]?)0[xX]([0-9a-fA-F]*)(?:\.([0-9a-fA-F]*))?[pP]([+-]?[0-9]+)$/
const special = /^([+-]?)(?:(inf|infinity)|nan)$/i

/** As Go's strconv.ParseFloat, which refuses what is too large. */
export function stringToDouble(text: string): Result {
  spendEffort(text.length)
  if (float.test(text)) {
    const value = Number(text)
    return Number.isFinite(value) ? new Double(value) : unconvertible(text, 'double')
  }
  const name = special.exec(text)
  if (name !== null) return specialDouble(text, name)
  const hex = hexFloat.exec(text)
  if (hex === null || `${hex[2]}${hex[3] ?? ''}` === '') return unconvertible(text, 'double')
  const mantissa = Number(`0x${hex[2]}${hex[3] ?? ''}`) * 2 ** (-4 * (hex[3] ?? '').length)
  return new Double((hex[1] === '-' ? -1 : 1) * mantissa * 2 ** Number(hex[4]))
}

function specialDouble(text: string, [, sign, infinity]: readonly (string | undefined)[]): Result {
  if (infinity !== undefined) return new Double(sign === '-' ? -Infinity : Infinity)
  return sign === '' ? new Double(Number.NaN) : unconvertible(text, 'double')
}

const truths: ReadonlyMap<string, boolean> = new Map([
  ...['1', 't', 'T', 'true', 'TRUE', 'True'].map((text) => [text, true] as const),
  ...['0', 'f', 'F', 'false', 'FALSE', 'False'].map((text) => [text, false] as const),
])

export function stringToBool(text: string): Result {
  return truths.get(text) ?? unconvertible(text, 'bool')
}

export function stringToDuration(text: string): Result {
  return parseGoDuration(text) ?? unconvertible(text, 'google.protobuf.Duration')
}

export function stringToTimestamp(text: string): Result {
  return parseTimestamp(text) ?? unconvertible(text, 'google.protobuf.Timestamp')
}

/** Declared, and never possible. */
export function intToDuration(value: number | bigint): Result {
  return unconvertible(value, 'google.protobuf.Duration')
}

const decoder = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true })

export function bytesToString(bytes: Uint8Array): Result {
  try {
    return decoder.decode(bytes)
  } catch {
    return new Failure('invalid UTF-8 in bytes, cannot convert to string')
  }
}

const encoder = new TextEncoder()

export const stringToBytes = (text: string): Uint8Array => encoder.encode(text)

/** `%g`: the fewest digits that read back as the same double, with an exponent from 1e6 on. */
export function doubleText({ value }: Double): string {
  if (Object.is(value, -0)) return '-0'
  if (!Number.isFinite(value)) return goNumber(value)
  const [mantissa = '', exponent = ''] = value.toExponential().split('e')
  const power = Number(exponent)
  if (power < -4 || power >= 6) return `${mantissa}e${exponent.slice(0, 1)}${exponent.slice(1).padStart(2, '0')}`
  return String(value)
}

/** `string(v)`; a failure where there is no such conversion. */
export function toText(value: Value): Result {
  switch (typeof value) {
    case 'string':
      return value
    case 'boolean':
    case 'number':
    case 'bigint':
      return String(value)
    default:
      return objectText(value)
  }
}

function objectText(value: Exclude<Value, string | boolean | number | bigint>): Result {
  if (value === null) return 'null'
  if (value instanceof Double) return doubleText(value)
  if (value instanceof Uint) return String(value.value)
  if (value instanceof Uint8Array) return bytesToString(value)
  if (value instanceof Timestamp) return timestampText(value)
  if (value instanceof Duration) return durationSecondsText(value)
  if (value instanceof TypeValue) return value.name
  return unconvertible(value, 'string')
}
