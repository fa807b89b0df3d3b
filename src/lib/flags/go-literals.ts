/**
 * Literals as Go reads them. Flags and config files of Kubernetes are made of them, and people grep for what is said about
 * wrong ones, so the same input is accepted and refused here with the same words.
 */
import { goQuote, goTimeQuote } from '../go-text.ts'

function refuse(fn: string, text: string, why: 'invalid syntax' | 'value out of range'): Error {
  return new Error(`strconv.${fn}: parsing ${goQuote(text)}: ${why}`)
}

const TRUE = new Set(['1', 't', 'T', 'TRUE', 'true', 'True'])
const FALSE = new Set(['0', 'f', 'F', 'FALSE', 'false', 'False'])

/** strconv.ParseBool. Throws with its text. */
export function parseBool(text: string): boolean {
  if (TRUE.has(text)) return true
  if (FALSE.has(text)) return false
  throw refuse('ParseBool', text, 'invalid syntax')
}

const INTEGER = /^([+-]?)(0[xX](?:_?[\da-fA-F])+|0[bB](?:_?[01])+|0[oO]?(?:_?[0-7])+|0|[1-9](?:_?\d)*)$/

/**
 * strconv.ParseInt with base 0: decimal, 0x, 0b, 0o, a leading 0 for octal, and underscores between digits. Numbers
 * that do not fit `bits`, or that JavaScript cannot hold exactly, are out of range.
 */
export function parseInteger(text: string, bits = 64): number {
  const match = INTEGER.exec(text)
  if (match === null) throw refuse('ParseInt', text, 'invalid syntax')
  const value = magnitude(match[2] as string) * (match[1] === '-' ? -1n : 1n)
  if (BigInt.asIntN(bits, value) !== value || !isExact(value)) throw refuse('ParseInt', text, 'value out of range')
  return Number(value)
}

/** strconv.ParseUint with base 0. Signs are a syntax error, as in Go. */
export function parseUnsigned(text: string, bits = 64): number {
  const match = INTEGER.exec(text)
  if (match === null || match[1] !== '') throw refuse('ParseUint', text, 'invalid syntax')
  const value = magnitude(match[2] as string)
  if (BigInt.asUintN(bits, value) !== value || !isExact(value)) throw refuse('ParseUint', text, 'value out of range')
  return Number(value)
}

function magnitude(digits: string): bigint {
  const plain = digits.replaceAll('_', '')
  return BigInt(/^0\d/.test(plain) ? `0o${plain.slice(1)}` : plain.toLowerCase())
}

function isExact(value: bigint): boolean {
  return Number.isSafeInteger(Number(value))
}

const DECIMAL = /^[+-]?(?:\d(?:_?\d)*\.?|\.\d|\d(?:_?\d)*\.\d)(?:_?\d)*(?:[eE][+-]?\d+)?$/
const NOT_FINITE = /^([+-]?)(?:inf|infinity)$/i

/** strconv.ParseFloat for decimal numbers, infinities and NaN. Go's hexadecimal floats are refused. */
export function parseFloating(text: string, bits: 32 | 64 = 64): number {
  if (DECIMAL.test(text)) {
    const value = Number(text.replaceAll('_', ''))
    if (!Number.isFinite(bits === 32 ? Math.fround(value) : value))
      throw refuse('ParseFloat', text, 'value out of range')
    return value
  }
  const infinite = NOT_FINITE.exec(text)
  if (infinite !== null) return infinite[1] === '-' ? -Infinity : Infinity
  if (/^nan$/i.test(text)) return Number.NaN
  throw refuse('ParseFloat', text, 'invalid syntax')
}

/** strconv.FormatFloat(value, 'g', -1, 64): shortest digits, with an exponent below 1e-4 and from 1e6 on. */
export function formatFloat(value: number): string {
  if (Number.isNaN(value)) return 'NaN'
  if (!Number.isFinite(value)) return value > 0 ? '+Inf' : '-Inf'
  const [digits = '', power = '0'] = value.toExponential().split('e')
  const exponent = Number(power)
  if (value === 0 || (exponent >= -4 && exponent < 6)) return Object.is(value, -0) ? '-0' : String(value)
  return `${digits}e${exponent < 0 ? '-' : '+'}${String(Math.abs(exponent)).padStart(2, '0')}`
}

const NANOSECONDS: ReadonlyMap<string, bigint> = new Map([
  ['ns', 1n],
  ['us', 1_000n],
  ['\u00b5s', 1_000n],
  ['\u03bcs', 1_000n],
  ['ms', 1_000_000n],
  ['s', 1_000_000_000n],
  ['m', 60_000_000_000n],
  ['h', 3_600_000_000_000n],
])
const NS_PER_MS = 1e6

/** time.ParseDuration, in milliseconds (with a fraction for anything finer). Throws with Go's text. */
export function parseDuration(text: string): number {
  const unsigned = text.replace(/^[+-]/, '')
  if (unsigned === '0') return 0
  let total = 0n
  let at = 0
  do {
    const [part = '', whole = '', fraction = '', unit = ''] =
      /^(\d*)(?:\.(\d*))?([^.\d]*)/.exec(unsigned.slice(at)) ?? []
    const integer = whole.replace(/^0+/, '')
    if (whole + fraction === '' || integer.length > INT64_DIGITS) {
      throw new Error(`time: invalid duration ${goTimeQuote(text)}`)
    }
    total += BigInt(`0${integer}`) * scaleOf(unit, text) + fractionOf(fraction, scaleOf(unit, text))
    at += part.length
  } while (at < unsigned.length)
  const signed = text.startsWith('-') ? -total : total
  if (BigInt.asIntN(64, signed) !== signed) throw new Error(`time: invalid duration ${goTimeQuote(text)}`)
  return Number(signed) / NS_PER_MS
}

function scaleOf(unit: string, text: string): bigint {
  if (unit === '') throw new Error(`time: missing unit in duration ${goTimeQuote(text)}`)
  const scale = NANOSECONDS.get(unit)
  if (scale === undefined) throw new Error(`time: unknown unit ${goTimeQuote(unit)} in duration ${goTimeQuote(text)}`)
  return scale
}

/** Longer integers overflow; digits of a fraction from there on are far below a nanosecond. */
const INT64_DIGITS = 19

/** The part of `scale` that the digits after the point stand for, cut to whole nanoseconds. */
function fractionOf(digits: string, scale: bigint): bigint {
  const read = digits.slice(0, INT64_DIGITS)
  return read === '' ? 0n : (BigInt(read) * scale) / 10n ** BigInt(read.length)
}

/** time.Duration.String() of a duration in milliseconds: `1h0m0s`, `1.5s`, `100ms`, `0s`. */
export function formatDuration(durationMs: number): string {
  const ns = BigInt(Math.round(Math.abs(durationMs) * NS_PER_MS))
  const sign = durationMs < 0 && ns > 0n ? '-' : ''
  if (ns === 0n) return '0s'
  if (ns < 1_000n) return `${sign}${ns}ns`
  if (ns < 1_000_000n) return `${sign}${decimal(ns, 1_000n)}\u00b5s`
  if (ns < 1_000_000_000n) return `${sign}${decimal(ns, 1_000_000n)}ms`
  const minutes = ns / 60_000_000_000n
  const seconds = `${decimal(ns % 60_000_000_000n, 1_000_000_000n)}s`
  if (minutes === 0n) return sign + seconds
  if (minutes < 60n) return `${sign}${minutes}m${seconds}`
  return `${sign}${minutes / 60n}h${minutes % 60n}m${seconds}`
}

function decimal(value: bigint, scale: bigint): string {
  const fraction = (value % scale)
    .toString()
    .padStart(scale.toString().length - 1, '0')
    .replace(/0+$/, '')
  return fraction === '' ? String(value / scale) : `${value / scale}.${fraction}`
}
