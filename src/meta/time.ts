/**
 * metav1.Time and MicroTime. Objects contain UTC text with whole seconds or six decimals. Parsing follows Go's
 * time.Parse for RFC 3339, with its leniency (`T1:02:03`, a comma before the fraction) and its messages.
 */
import { goTimeQuote } from '#lib/go/text.ts'

/** A moment: seconds since 1970, and 0 to 999,999,999 nanoseconds. */
export interface Instant {
  readonly seconds: number
  readonly nanos: number
}

const timeLayout = '2006-01-02T15:04:05Z07:00'
const microLayout = '2006-01-02T15:04:05.000000Z07:00'

/** Go's zero time, 0001-01-01T00:00:00Z, which counts as absent. */
const zeroSeconds = -62_135_596_800

/** Parses a time with any fraction and offset. Throws Go's text. */
export function parseTime(text: string): Instant {
  return parse(text, timeLayout, timeSteps)
}

/** Parses a micro time with exactly six decimals. Throws Go's text. */
export function parseMicroTime(text: string): Instant {
  return parse(text, microLayout, microSteps)
}

/** Parses a time without a zone as UTC. Throws Go's text. */
export function parseLocalTime(text: string): Instant {
  return parse(text, '2006-01-02T15:04:05', localSteps)
}

export function isZeroTime({ seconds, nanos }: Instant): boolean {
  return seconds === zeroSeconds && nanos === 0
}

/** `2026-01-02T03:04:05Z`; truncated to seconds. */
export function timeText({ seconds }: Instant): string {
  if (seconds !== lastTime.seconds) lastTime = { seconds, text: `${secondsText(seconds)}Z` }
  return lastTime.text
}

/** Nearly all written times are the current second: every write of a busy second contains two. */
let lastTime = { seconds: Number.NaN, text: '' }

/** `2026-01-02T03:04:05.678901Z`; truncated to microseconds. */
export function microTimeText(instant: Instant): string {
  const micros = Math.trunc(instant.nanos / 1000)
  return `${secondsText(instant.seconds)}.${String(micros).padStart(6, '0')}Z`
}

/** Formats a clock reading: `timeOf(clock.now())`. */
export function timeOf(epochMs: number): string {
  return timeText(instantOf(epochMs))
}

/** Formats a clock reading as a micro time. */
export function microTimeOf(epochMs: number): string {
  return microTimeText(instantOf(epochMs))
}

/**
 * A time in the form of objects, on a day that every month has: native parsing is correct for these, and tables contain
 * many.
 */
const plainTime = /^\d{4}-(?:0[1-9]|1[0-2])-(?:0[1-9]|1\d|2[0-8])T(?:[01]\d|2[0-3]):[0-5]\d:[0-5]\dZ$/

/** Milliseconds since 1970 of a time or micro time in an object; throws for other text. */
export function epochMsOf(text: string): number {
  if (plainTime.test(text)) return Date.parse(text)
  const { seconds, nanos } = parseTime(text)
  return seconds * 1000 + Math.floor(nanos / 1_000_000)
}

export function instantOf(epochMs: number): Instant {
  const seconds = Math.floor(epochMs / 1000)
  return { seconds, nanos: Math.floor((epochMs - seconds * 1000) * 1_000_000) }
}

/** The time in the form of objects; undefined for the zero time. Throws Go's text. */
export function canonicalTime(text: string): string | undefined {
  const instant = parseTime(text)
  return isZeroTime(instant) ? undefined : timeText(instant)
}

/** The micro time in the form of objects; undefined for the zero time. Throws Go's text. */
export function canonicalMicroTime(text: string): string | undefined {
  const instant = parseMicroTime(text)
  return isZeroTime(instant) ? undefined : microTimeText(instant)
}

type Part = 'year' | 'month' | 'day' | 'hour' | 'minute' | 'second' | 'nanos' | 'offset'
type Parts = Record<Part, number>

/** Consumes one element of the layout: returns the rest, or undefined without a match. */
interface Step {
  readonly element: string
  read(rest: string, parts: Parts): string | undefined
}

class OutOfRange extends Error {}

function literal(element: string): Step {
  return { element, read: (rest) => (rest.startsWith(element) ? rest.slice(1) : undefined) }
}

interface Bounds {
  readonly low: number
  readonly high: number
}

/** The longest number of one of the given widths. */
function number(element: string, part: Part, pattern: RegExp, bounds?: Bounds): Step {
  return {
    element,
    read(rest, parts) {
      const digits = pattern.exec(rest)?.[0]
      if (digits === undefined) return undefined
      const value = Number(digits)
      if (bounds !== undefined && (value < bounds.low || value > bounds.high)) throw new OutOfRange(part)
      parts[part] = value
      return rest.slice(digits.length)
    },
  }
}

const twoDigits = /^[0-9]{2}/
const second = number('05', 'second', twoDigits, { low: 0, high: 59 })

/** Go accepts a fraction after the seconds even if the layout has none. */
const secondWithFraction: Step = {
  element: '05',
  read(rest, parts) {
    const after = second.read(rest, parts)
    const fraction = after === undefined ? null : /^[.,]([0-9]+)/.exec(after)
    if (after === undefined || fraction === null) return after
    parts.nanos = nanosOf(fraction[1] as string)
    return after.slice(fraction[0].length)
  },
}

const sixDigits: Step = {
  element: '.000000',
  read(rest, parts) {
    const fraction = /^[.,]([0-9]{6})/.exec(rest)
    if (fraction === null) return undefined
    parts.nanos = nanosOf(fraction[1] as string)
    return rest.slice(7)
  },
}

const zone: Step = {
  element: 'Z07:00',
  read(rest, parts) {
    if (rest.startsWith('Z')) return rest.slice(1)
    const match = /^([^])([0-9]{2}):([0-9]{2})/.exec(rest)
    if (match === null) return undefined
    const [hours, minutes] = [Number(match[2]), Number(match[3])]
    if (minutes > 60) throw new OutOfRange('time zone offset minute')
    if (hours > 24) throw new OutOfRange('time zone offset hour')
    if (match[1] !== '+' && match[1] !== '-') return undefined
    parts.offset = (match[1] === '-' ? -60 : 60) * (hours * 60 + minutes)
    return rest.slice(6)
  },
}

const untilMinute: readonly Step[] = [
  number('2006', 'year', /^[0-9]{4}/),
  literal('-'),
  number('01', 'month', twoDigits, { low: 1, high: 12 }),
  literal('-'),
  number('02', 'day', twoDigits),
  literal('T'),
  number('15', 'hour', /^[0-9]{1,2}/, { low: 0, high: 23 }),
  literal(':'),
  number('04', 'minute', twoDigits, { low: 0, high: 59 }),
  literal(':'),
]
const localSteps: readonly Step[] = [...untilMinute, secondWithFraction]
const timeSteps: readonly Step[] = [...localSteps, zone]
const microSteps: readonly Step[] = [...untilMinute, second, sixDigits, zone]

function parse(text: string, layout: string, steps: readonly Step[]): Instant {
  const parts: Parts = { year: 0, month: 1, day: 1, hour: 0, minute: 0, second: 0, nanos: 0, offset: 0 }
  let rest = text
  for (const step of steps) {
    const after = attempt(step, rest, parts, text)
    if (after === undefined) {
      const where = `cannot parse ${goTimeQuote(rest)} as ${goTimeQuote(step.element)}`
      throw new Error(`parsing time ${goTimeQuote(text)} as ${goTimeQuote(layout)}: ${where}`)
    }
    rest = after
  }
  if (rest !== '') throw new Error(`parsing time ${goTimeQuote(text)}: extra text: ${goTimeQuote(rest)}`)
  if (parts.day < 1 || parts.day > daysIn(parts.year, parts.month)) throw rangeError(text, 'day')
  return toInstant(parts)
}

function attempt(step: Step, rest: string, parts: Parts, text: string): string | undefined {
  try {
    return step.read(rest, parts)
  } catch (error) {
    throw error instanceof OutOfRange ? rangeError(text, error.message) : error
  }
}

function rangeError(text: string, part: string): Error {
  return new Error(`parsing time ${goTimeQuote(text)}: ${part} out of range`)
}

function toInstant({ year, month, day, hour, minute, second, nanos, offset }: Parts): Instant {
  const seconds = daysBefore(year, month, day) * 86_400 + hour * 3600 + minute * 60 + second - offset
  return { seconds, nanos }
}

/** Days from 1970 to a date. Date.UTC would read the year 26 as 1926. */
function daysBefore(year: number, month: number, day: number): number {
  return new Date(0).setUTCFullYear(year, month - 1, day) / 86_400_000
}

function daysIn(year: number, month: number): number {
  return new Date(new Date(0).setUTCFullYear(year, month, 0)).getUTCDate()
}

function nanosOf(fraction: string): number {
  return Number(fraction.slice(0, 9).padEnd(9, '0'))
}

function secondsText(seconds: number): string {
  const date = new Date(seconds * 1000)
  const text = date.toISOString()
  const year = date.getUTCFullYear()
  if (year >= 0 && year <= 9999) return text.slice(0, -5)
  // Other than four-digit years have six digits and a sign there.
  return `${year < 0 ? '-' : ''}${String(Math.abs(year)).padStart(4, '0')}${text.slice(7, -5)}`
}
