/** CEL's timestamps, which keep their original UTC offset, and durations. */

import { parseDuration } from '#lib/go/duration.ts'
import { parseGoInt } from '#lib/go/text.ts'
import { isTimeZone, offsetAt } from '#lib/time/time-zone.ts'
import { parseTime } from '#meta/time.ts'

import { spendEffort } from '../effort.ts'
import { Failure, MAX_INT64, MIN_INT64, type Other, type Result } from '../value.ts'

const SECOND = 1_000_000_000n
/** Of the years 1 to 9999. */
const MIN_SECONDS = -62_135_596_800
const MAX_SECONDS = 253_402_300_799

export class Timestamp implements Other {
  readonly typeName = 'google.protobuf.Timestamp'
  /** Since 1970. */
  readonly seconds: number
  readonly nanos: number
  /** East of UTC, in seconds. Says how it is printed, not when it is. */
  readonly offset: number
  constructor(seconds: number, nanos: number, offset: number = 0) {
    this.seconds = seconds
    this.nanos = nanos
    this.offset = offset
  }
}

export class Duration implements Other {
  readonly typeName = 'google.protobuf.Duration'
  /** Within int64. */
  readonly nanos: bigint
  constructor(nanos: bigint) {
    this.nanos = nanos
  }
}

const TIMESTAMP_OVERFLOW = new Failure('timestamp overflow')
const INTEGER_OVERFLOW = new Failure('integer overflow')

/** Reads RFC 3339 as Go does; undefined when it is none. */
export function parseTimestamp(text: string): Timestamp | Failure | undefined {
  spendEffort(text.length)
  try {
    const { seconds, nanos } = parseTime(text)
    return withinRange(seconds) ? new Timestamp(seconds, nanos, offsetOf(text)) : TIMESTAMP_OVERFLOW
  } catch {
    return undefined
  }
}

function offsetOf(text: string): number {
  const match = /([+-])(\d\d):(\d\d)$/.exec(text)
  if (match === null) return 0
  return (match[1] === '-' ? -60 : 60) * (Number(match[2]) * 60 + Number(match[3]))
}

export const withinRange = (seconds: number): boolean => seconds >= MIN_SECONDS && seconds <= MAX_SECONDS

export function timestampOfSeconds(seconds: number | bigint): Timestamp | Failure {
  const number = Number(seconds)
  return withinRange(number) ? new Timestamp(number, 0) : TIMESTAMP_OVERFLOW
}

/** Go's syntax; undefined when it is none. */
export function parseGoDuration(text: string): Duration | undefined {
  spendEffort(text.length)
  try {
    return new Duration(parseDuration(text))
  } catch {
    return undefined
  }
}

/** RFC 3339 with as many digits of a second as it takes. */
export function timestampText({ seconds, nanos, offset }: Timestamp): string {
  const date = new Date((seconds + offset) * 1000)
  const day = `${String(date.getUTCFullYear()).padStart(4, '0')}${date.toISOString().slice(-20, -5)}`
  const fraction = nanos === 0 ? '' : `.${String(nanos).padStart(9, '0').replace(/0+$/, '')}`
  return `${day}${fraction}${offsetText(offset)}`
}

function offsetText(offset: number): string {
  if (offset === 0) return 'Z'
  const minutes = Math.trunc(Math.abs(offset) / 60)
  const two = (value: number): string => String(value).padStart(2, '0')
  return `${offset < 0 ? '-' : '+'}${two(Math.trunc(minutes / 60))}:${two(minutes % 60)}`
}

/** Decimal seconds, through a double as Go has it. */
export function durationSecondsText({ nanos }: Duration): string {
  const seconds = Number(nanos / SECOND) + Number(nanos % SECOND) / 1e9
  return `${decimalText(seconds)}s`
}

/** All digits, never an exponent. */
export function decimalText(value: number): string {
  const text = String(value)
  const match = /^(-?)(\d)(?:\.(\d+))?e([+-]\d+)$/.exec(text)
  if (match === null) return text
  const [, sign = '', first = '', rest = '', power = '0'] = match
  const exponent = Number(power)
  if (exponent < 0) return `${sign}0.${'0'.repeat(-exponent - 1)}${first}${rest}`
  return `${sign}${first}${rest.padEnd(exponent, '0')}`
}

export function addDurations(a: Duration, b: Duration): Result {
  return durationOrOverflow(a.nanos + b.nanos)
}

export function durationOrOverflow(nanos: bigint): Result {
  return nanos > MAX_INT64 || nanos < MIN_INT64 ? INTEGER_OVERFLOW : new Duration(nanos)
}

export function shiftTimestamp({ seconds, nanos, offset }: Timestamp, by: bigint): Result {
  const total = BigInt(nanos) + by
  let carry = total / SECOND
  let rest = total % SECOND
  if (rest < 0n) [carry, rest] = [carry - 1n, rest + SECOND]
  const sum = seconds + Number(carry)
  return withinRange(sum) ? new Timestamp(sum, Number(rest), offset) : TIMESTAMP_OVERFLOW
}

export function timeBetween(a: Timestamp, b: Timestamp): Result {
  const seconds = BigInt(a.seconds - b.seconds) * SECOND
  if (seconds > MAX_INT64 || seconds < MIN_INT64) return INTEGER_OVERFLOW
  return durationOrOverflow(seconds + BigInt(a.nanos - b.nanos))
}

/** The date whose UTC fields are the local ones of a zone: `Europe/Paris`, `+02:00`, `` for UTC. */
export function inZone(timestamp: Timestamp, zone: string): Date | Failure {
  const colon = zone.indexOf(':')
  const offset = colon < 0 ? namedOffset(timestamp, zone) : numericOffset(zone, colon)
  return offset instanceof Failure ? offset : new Date((timestamp.seconds + offset) * 1000)
}

function namedOffset({ seconds }: Timestamp, zone: string): number | Failure {
  if (zone === '' || zone === 'UTC') return 0
  // Asking for the rules of a zone is slow.
  spendEffort(500)
  return isTimeZone(zone) ? Math.round(offsetAt(zone, seconds * 1000) / 1000) : new Failure(`unknown time zone ${zone}`)
}

function numericOffset(zone: string, colon: number): number | Failure {
  try {
    const hours = parseGoInt(zone.slice(0, colon), 'Atoi')
    const minutes = parseGoInt(zone.slice(colon + 1), 'Atoi')
    return 60 * (zone.startsWith('-') ? hours * 60 - minutes : hours * 60 + minutes)
  } catch (error) {
    return new Failure((error as Error).message)
  }
}
