/**
 * Parses cron schedules as robfig/cron does, and computes the next time of a schedule. A time that a clock change skips
 * does not fire; a time that occurs twice fires twice.
 */
import { durationMs } from '../go/duration.ts'
import { goQuote } from '../go/text.ts'
import { isTimeZone, nextChange, offsetAt } from './time-zone.ts'

/** Fires this long after the last time. */
export interface EverySchedule {
  readonly everyMs: number
}

/** Fires at every minute that is in all of these. */
export interface FieldSchedule {
  readonly minutes: ReadonlySet<number>
  readonly hours: ReadonlySet<number>
  readonly daysOfMonth: ReadonlySet<number>
  /** January is 1. */
  readonly months: ReadonlySet<number>
  /** Sunday is 0. */
  readonly daysOfWeek: ReadonlySet<number>
  /** A day must fit both lists, because one of them is `*`; otherwise one of the two will do. */
  readonly needsBothDays: boolean
  /** From a `TZ=` or `CRON_TZ=` in front; wins over the zone that `nextTime` is given. */
  readonly zone?: string
}

export type CronSchedule = EverySchedule | FieldSchedule

interface Bounds {
  readonly least: number
  readonly most: number
  readonly names?: ReadonlyMap<string, number>
}

function named(texts: string, first: number): ReadonlyMap<string, number> {
  return new Map(texts.split(' ').map((text, at) => [text, first + at]))
}

const minuteBounds: Bounds = { least: 0, most: 59 }
const hourBounds: Bounds = { least: 0, most: 23 }
const dayBounds: Bounds = { least: 1, most: 31 }
const monthBounds: Bounds = {
  least: 1,
  most: 12,
  names: named('jan feb mar apr may jun jul aug sep oct nov dec', 1),
}
const weekdayBounds: Bounds = { least: 0, most: 6, names: named('sun mon tue wed thu fri sat', 0) }

const descriptors = new Map([
  ['@yearly', '0 0 1 1 *'],
  ['@annually', '0 0 1 1 *'],
  ['@monthly', '0 0 1 * *'],
  ['@weekly', '0 0 * * 0'],
  ['@daily', '0 0 * * *'],
  ['@midnight', '0 0 * * *'],
  ['@hourly', '0 * * * *'],
])

const FIELD_COUNT = 5
const EVERY = '@every '

/** Reads a schedule. Throws robfig/cron's text. */
export function parseCron(text: string): CronSchedule {
  if (text === '') throw new Error('empty spec string')
  const { zone, rest } = splitZone(text)
  if (rest.startsWith(EVERY)) return { everyMs: parseEvery(rest) }
  const spec = rest.startsWith('@') ? descriptors.get(rest) : rest
  if (spec === undefined) throw new Error(`unrecognized descriptor: ${rest}`)
  const fields = spec.split(/\s+/u).filter((field) => field !== '')
  if (fields.length !== FIELD_COUNT) {
    throw new Error(`expected exactly ${FIELD_COUNT} fields, found ${fields.length}: [${fields.join(' ')}]`)
  }
  const [minute = '', hour = '', day = '', month = '', weekday = ''] = fields
  const minutes = parseField(minute, minuteBounds)
  const hours = parseField(hour, hourBounds)
  const days = parseField(day, dayBounds)
  const months = parseField(month, monthBounds)
  const weekdays = parseField(weekday, weekdayBounds)
  return {
    minutes: minutes.values,
    hours: hours.values,
    daysOfMonth: days.values,
    months: months.values,
    daysOfWeek: weekdays.values,
    needsBothDays: days.hasStar || weekdays.hasStar,
    ...(zone === undefined ? {} : { zone }),
  }
}

function splitZone(text: string): { readonly zone?: string; readonly rest: string } {
  const head = /^(?:CRON_)?TZ=/.exec(text)?.[0]
  if (head === undefined) return { rest: text }
  const space = text.indexOf(' ')
  if (space < 0) throw new Error('invalid schedule format: nothing follows the time zone')
  const zone = text.slice(head.length, space)
  try {
    checkTimeZone(zone)
  } catch (cause) {
    throw new Error(`provided bad location ${zone}: ${(cause as Error).message}`, { cause })
  }
  return { zone, rest: text.slice(space).trim() }
}

/** No duration needs more characters; each costs time. */
const MAX_DURATION_LENGTH = 1000

/** Whole seconds, at least one. */
function parseEvery(text: string): number {
  if (text.length > MAX_DURATION_LENGTH) throw new Error(`failed to parse duration: it has ${text.length} characters`)
  try {
    return Math.max(1000, Math.trunc(durationMs(text.slice(EVERY.length)) / 1000) * 1000)
  } catch (cause) {
    throw new Error(`failed to parse duration ${text}: ${(cause as Error).message}`, { cause })
  }
}

interface Field {
  readonly values: ReadonlySet<number>
  /** A step above one takes the star's meaning away. */
  readonly hasStar: boolean
}

/** More than there are ranges of minutes; each costs time. */
const MAX_EXPRESSIONS = 2000

function parseField(text: string, bounds: Bounds): Field {
  const values = new Set<number>()
  let hasStar = false
  const expressions = new Set(text.split(','))
  expressions.delete('')
  if (expressions.size > MAX_EXPRESSIONS) throw new Error(`too many expressions in a field: ${expressions.size}`)
  for (const expression of expressions) {
    const range = parseRange(expression, bounds)
    hasStar ||= range.hasStar
    for (let value = range.first; value <= range.last; value += range.step) values.add(value)
  }
  return { values, hasStar }
}

interface Range {
  readonly first: number
  readonly last: number
  readonly step: number
  readonly hasStar: boolean
}

function parseRange(expression: string, bounds: Bounds): Range {
  const [span = '', ...steps] = expression.split('/')
  const { first, last, isStar, isSingle } = parseSpan(span, expression, bounds)
  if (steps.length > 1) throw new Error(`too many slashes: ${expression}`)
  const step = steps[0] === undefined ? 1 : parseNumber(steps[0])
  // `N/step` goes on to the end.
  const end = isSingle && steps.length === 1 ? bounds.most : last
  if (first < bounds.least) {
    throw new Error(`beginning of range (${first}) below minimum (${bounds.least}): ${expression}`)
  }
  if (end > bounds.most) throw new Error(`end of range (${end}) above maximum (${bounds.most}): ${expression}`)
  if (first > end) throw new Error(`beginning of range (${first}) beyond end of range (${end}): ${expression}`)
  if (step === 0) throw new Error(`step of range should be a positive number: ${expression}`)
  return { first, last: end, step, hasStar: isStar && step === 1 }
}

interface Span {
  readonly first: number
  readonly last: number
  readonly isStar: boolean
  readonly isSingle: boolean
}

function parseSpan(span: string, expression: string, { least, most, names }: Bounds): Span {
  const [low = '', ...highs] = span.split('-')
  const isSingle = highs.length === 0
  if (low === '*' || low === '?') return { first: least, last: most, isStar: true, isSingle }
  const read = (text: string): number => names?.get(text.toLowerCase()) ?? parseNumber(text)
  const first = read(low)
  if (highs.length > 1) throw new Error(`too many hyphens: ${expression}`)
  return { first, last: highs[0] === undefined ? first : read(highs[0]), isStar: false, isSingle }
}

const INT64_LIMIT = 2n ** 63n

function parseNumber(text: string): number {
  const refuse = (why: string): Error =>
    new Error(`failed to parse int from ${text}: strconv.Atoi: parsing ${goQuote(text)}: ${why}`)
  if (!/^[+-]?[0-9]+$/.test(text)) throw refuse('invalid syntax')
  const value = BigInt(text.replace('+', ''))
  if (value >= INT64_LIMIT || value < -INT64_LIMIT) throw refuse('value out of range')
  if (value < 0n) throw new Error(`negative number (${value}) not allowed: ${text}`)
  return Number(value)
}

/** Throws Go's text for an unknown zone. Names are case-sensitive; the empty one is UTC. */
export function checkTimeZone(name: string): void {
  if (name === '' || name === 'UTC') return
  if (name.includes('..') || /^[/\\]/.test(name)) throw new Error('time: invalid location name')
  if (!isTimeZone(name)) throw new Error(`unknown time zone ${name}`)
}

/** After so many years without one, a schedule has no next time (`0 0 30 2 *`). */
const YEARS_AHEAD = 5
const MINUTE_MS = 60_000

/**
 * The first time after `afterMs`, in milliseconds since 1970; undefined when there is none within five years. `zone`
 * is the one whose clock counts, UTC unless given.
 */
export function nextTime(schedule: CronSchedule, afterMs: number, zone = 'UTC'): number | undefined {
  const second = Math.floor(afterMs / 1000) * 1000
  if ('everyMs' in schedule) return second + schedule.everyMs
  // A field of nothing but commas is allowed and never comes; looking for it would take a while.
  if (schedule.minutes.size === 0 || schedule.hours.size === 0) return undefined
  const { offset, change } = clockOf(schedule.zone ?? zone)
  let from = second + 1000
  const lastYear = new Date(from + offset(from)).getUTCFullYear() + YEARS_AHEAD
  const horizon = Date.UTC(lastYear + 2, 0)
  for (;;) {
    const ahead = offset(from)
    const wall = nextWallTime(schedule, from + ahead, lastYear)
    const set = change(from, wall === undefined ? horizon : wall - ahead)
    if (set === undefined) return wall === undefined ? undefined : wall - ahead
    // The clock is set before it shows that time, or before the years are over: look again from there.
    from = set
  }
}

interface WallClock {
  readonly offset: (ms: number) => number
  readonly change: (fromMs: number, untilMs: number) => number | undefined
}

function clockOf(zone: string): WallClock {
  if (zone === 'UTC' || zone === '') return { offset: () => 0, change: () => undefined }
  return { offset: (ms) => offsetAt(zone, ms), change: (from, until) => nextChange(zone, from, until) }
}

/** The first minute from `wallMs` on that matches, on a clock that is never set. Wall times are written as if in UTC. */
function nextWallTime(schedule: FieldSchedule, wallMs: number, lastYear: number): number | undefined {
  let at = new Date(Math.ceil(wallMs / MINUTE_MS) * MINUTE_MS)
  for (;;) {
    const [year, month, day] = [at.getUTCFullYear(), at.getUTCMonth(), at.getUTCDate()]
    const [hour, minute] = [at.getUTCHours(), at.getUTCMinutes()]
    if (year > lastYear) return undefined
    if (!schedule.months.has(month + 1)) at = new Date(Date.UTC(year, month + 1, 1))
    else if (!dayMatches(schedule, day, at.getUTCDay())) at = new Date(Date.UTC(year, month, day + 1))
    else if (!schedule.hours.has(hour)) at = new Date(Date.UTC(year, month, day, hour + 1))
    else if (!schedule.minutes.has(minute)) at = new Date(Date.UTC(year, month, day, hour, minute + 1))
    else return at.getTime()
  }
}

function dayMatches({ daysOfMonth, daysOfWeek, needsBothDays }: FieldSchedule, day: number, weekday: number): boolean {
  const [ofMonth, ofWeek] = [daysOfMonth.has(day), daysOfWeek.has(weekday)]
  return needsBothDays ? ofMonth && ofWeek : ofMonth || ofWeek
}
