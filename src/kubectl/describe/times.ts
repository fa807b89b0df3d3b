/** Formats times for descriptions, in the local time zone. */
import { ageText } from '#meta/duration.ts'
import { epochMsOf } from '#meta/time.ts'

const DAYS = ['Sun', 'Mon', 'Tue', 'Wed', 'Thu', 'Fri', 'Sat']
const MONTHS = ['Jan', 'Feb', 'Mar', 'Apr', 'May', 'Jun', 'Jul', 'Aug', 'Sep', 'Oct', 'Nov', 'Dec']

/** Go's text for the zero time. */
const ZERO = 'Mon, 01 Jan 0001 00:00:00 +0000'

/** `Mon, 02 Jan 2006 15:04:05 -0700`. */
export function dateText(timestamp: string | undefined | null): string {
  if (timestamp === undefined || timestamp === null) return ZERO
  const date = new Date(epochMsOf(timestamp))
  const day = `${DAYS[date.getDay()]}, ${two(date.getDate())} ${MONTHS[date.getMonth()]}`
  return `${day} ${String(date.getFullYear()).padStart(4, '0')} ${clockText(date)} ${offsetText(date)}`
}

/** Like `dateText`, but empty for a missing time. */
export function dateIfAny(timestamp: string | undefined | null): string | undefined {
  return timestamp === undefined || timestamp === null ? undefined : dateText(timestamp)
}

/** Go's default format of a time: `2006-01-02 15:04:05 -0700 MST`. */
export function plainDateText(timestamp: string | undefined): string {
  if (timestamp === undefined) return '0001-01-01 00:00:00 +0000 UTC'
  const date = new Date(epochMsOf(timestamp))
  const day = `${String(date.getFullYear()).padStart(4, '0')}-${two(date.getMonth() + 1)}-${two(date.getDate())}`
  const named = new Intl.DateTimeFormat('en-US', { timeZoneName: 'short' }).formatToParts(date)
  const zone = named.find(({ type }) => type === 'timeZoneName')?.value ?? 'UTC'
  return `${day} ${clockText(date)} ${offsetText(date)} ${zone}`
}

export function sinceText(timestamp: string | undefined | null, nowMs: number): string {
  return ageText(timestamp ?? undefined, nowMs)
}

function clockText(date: Date): string {
  return `${two(date.getHours())}:${two(date.getMinutes())}:${two(date.getSeconds())}`
}

function offsetText(date: Date): string {
  const minutes = -date.getTimezoneOffset()
  const size = Math.abs(minutes)
  return `${minutes < 0 ? '-' : '+'}${two(Math.trunc(size / 60))}${two(size % 60)}`
}

function two(value: number): string {
  return String(value).padStart(2, '0')
}

/** `2006-01-02T15:04:05Z07:00`, in the local time zone. */
export function localTimestamp(nowMs: number): string {
  const date = new Date(nowMs)
  const day = `${String(date.getFullYear()).padStart(4, '0')}-${two(date.getMonth() + 1)}-${two(date.getDate())}`
  const offset = offsetText(date)
  return `${day}T${clockText(date)}${offset === '+0000' ? 'Z' : `${offset.slice(0, 3)}:${offset.slice(3)}`}`
}
