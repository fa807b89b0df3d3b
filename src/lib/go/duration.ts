/**
 * Go durations (`1h30m0s`), the form of metav1.Duration and many flags. A duration is a bigint of nanoseconds with 64 bits, as
 * in Go.
 */
import { goTimeQuote } from './text.ts'

const MICROSECOND = 1_000n
const MILLISECOND = 1_000_000n
const SECOND = 1_000_000_000n
const MINUTE = 60n * SECOND
const HOUR = 60n * MINUTE
const LIMIT = 2n ** 63n

const units = new Map([
  ['ns', 1n],
  ['us', MICROSECOND],
  // The micro sign and the Greek letter.
  ['\u00b5s', MICROSECOND],
  ['\u03bcs', MICROSECOND],
  ['ms', MILLISECOND],
  ['s', SECOND],
  ['m', MINUTE],
  ['h', HOUR],
])

/** Parses a duration into nanoseconds. Throws Go's text. */
export function parseDuration(text: string): bigint {
  const negative = text.startsWith('-')
  const body = negative || text.startsWith('+') ? text.slice(1) : text
  if (body === '0') return 0n
  if (body === '') throw invalidDuration(text)
  let total = 0n
  const term = /([0-9]*)(?:\.([0-9]*))?([^0-9.]*)/y
  while (term.lastIndex < body.length) {
    const [, whole = '', fraction = '', unit = ''] = term.exec(body) as unknown as string[]
    total += termNanos({ whole, fraction, unit, text })
    if (total > LIMIT) throw invalidDuration(text)
  }
  if (negative) return -total
  if (total === LIMIT) throw invalidDuration(text)
  return total
}

/** The canonical text: `1h30m0s`, `1.5s`, `100ms`, `0s`. */
export function durationText(nanos: bigint): string {
  const size = nanos < 0n ? -nanos : nanos
  return (nanos < 0n ? '-' : '') + (size < SECOND ? subsecondText(size) : secondsAndMore(size))
}

/** Parses a duration into milliseconds, possibly fractional. Throws Go's text. */
export function durationMs(text: string): number {
  return Number(parseDuration(text)) / 1e6
}

/** The canonical text of a number of milliseconds. */
export function durationOfMs(ms: number): string {
  return durationText(BigInt(Math.round(ms * 1e6)))
}

interface Term {
  readonly whole: string
  readonly fraction: string
  readonly unit: string
  readonly text: string
}

function termNanos({ whole, fraction, unit, text }: Term): bigint {
  if (whole === '' && fraction === '') throw invalidDuration(text)
  // Further digits exceed 64 bits in any case.
  const integer = whole.replace(/^0+/, '')
  if (integer.length > 19 || BigInt(`0${integer}`) > LIMIT) throw invalidDuration(text)
  if (unit === '') throw new Error(`time: missing unit in duration ${goTimeQuote(text)}`)
  const size = units.get(unit)
  if (size === undefined) throw new Error(`time: unknown unit ${goTimeQuote(unit)} in duration ${goTimeQuote(text)}`)
  const nanos = BigInt(`0${integer}`) * size + fractionNanos(fraction, size)
  if (nanos > LIMIT) throw invalidDuration(text)
  return nanos
}

/** In floating point, because Go's rounding is visible. */
function fractionNanos(fraction: string, size: bigint): bigint {
  let digits = fraction.slice(0, 18)
  const nineteen = fraction.slice(0, 19)
  if (nineteen.length === 19 && BigInt(digits) <= (LIMIT - 1n) / 10n && BigInt(nineteen) <= LIMIT) digits = nineteen
  if (digits === '') return 0n
  return BigInt(Math.trunc(Number(BigInt(digits)) * (Number(size) / 10 ** digits.length)))
}

function invalidDuration(text: string): Error {
  return new Error(`time: invalid duration ${goTimeQuote(text)}`)
}

function subsecondText(nanos: bigint): string {
  if (nanos === 0n) return '0s'
  if (nanos < MICROSECOND) return `${nanos}ns`
  return nanos < MILLISECOND ? `${decimal(nanos, 3)}\u00b5s` : `${decimal(nanos, 6)}ms`
}

function secondsAndMore(nanos: bigint): string {
  const seconds = `${decimal(nanos % MINUTE, 9)}s`
  const minutes = nanos / MINUTE
  if (minutes === 0n) return seconds
  return minutes < 60n ? `${minutes}m${seconds}` : `${minutes / 60n}h${minutes % 60n}m${seconds}`
}

/** `value` / 10^`places`, without trailing zeros. */
function decimal(value: bigint, places: number): string {
  const digits = value.toString().padStart(places + 1, '0')
  const fraction = digits.slice(-places).replace(/0+$/, '')
  return fraction === '' ? digits.slice(0, -places) : `${digits.slice(0, -places)}.${fraction}`
}
