/** Computes the next and the missed start times of a CronJob. Pure. */
import type { CronJob } from '#apis/batch/v1.ts'
import { type CronSchedule, nextTime } from '#lib/time/cron.ts'
import { offsetAt } from '#lib/time/time-zone.ts'
import { epochMsOf } from '#meta/time.ts'

/** More missed starts than this cause a warning. */
const MANY = 100
/** A margin, so that the time has passed. */
const DELTA_MS = 100

export interface Starts {
  readonly earliestMs: number
  /** The latest due start; undefined if none is due. */
  readonly latestMs: number | undefined
  readonly missed: 'none' | 'few' | 'many'
}

/** The next time at which the schedule fires. */
export type Next = (afterMs: number) => number

export function nextOf(schedule: CronSchedule, { spec }: CronJob): Next {
  // For a schedule that never fires; `startsOf` reports the error.
  return (afterMs) => nextTime(schedule, afterMs, spec.timeZone) ?? afterMs
}

/** `withDeadline` ignores starts before `startingDeadlineSeconds`. */
export function startsOf(
  { metadata, spec, status }: CronJob,
  nowMs: number,
  next: Next,
  withDeadline: boolean,
): Starts {
  const sinceMs = epochMsOf(status.lastScheduleTime ?? metadata.creationTimestamp ?? '')
  const deadlineMs = nowMs - (spec.startingDeadlineSeconds ?? Infinity) * 1000
  const earliestMs = withDeadline ? Math.max(sinceMs, deadlineMs) : sinceMs
  const firstMs = next(earliestMs)
  const secondMs = next(firstMs)
  if (nowMs < firstMs) return { earliestMs, latestMs: undefined, missed: 'none' }
  if (nowMs < secondMs) return { earliestMs, latestMs: firstMs, missed: 'none' }
  const betweenMs = Math.round((secondMs - firstMs) / 1000) * 1000
  if (betweenMs < 1000) throw new Error('time difference between two schedules is less than 1 second')
  const count = Math.floor((nowMs - firstMs) / betweenMs) + 1
  // Skips ahead: there may be very many missed starts.
  let latestMs: number | undefined
  for (let at = next(firstMs + (count - 2) * betweenMs); at <= nowMs; at = next(at)) latestMs = at
  return { earliestMs, latestMs, missed: count > MANY ? 'many' : 'few' }
}

export function waitMs(cronJob: CronJob, nowMs: number, next: Next): number {
  return next(lastMs(cronJob, nowMs, next)) + DELTA_MS - nowMs
}

function lastMs(cronJob: CronJob, nowMs: number, next: Next): number {
  try {
    const { earliestMs, latestMs, missed } = startsOf(cronJob, nowMs, next, false)
    return latestMs ?? (missed === 'none' ? earliestMs : nowMs)
  } catch {
    return nowMs
  }
}

/** RFC 3339 in the time zone. */
export function localTime(ms: number, zone: string | undefined): string {
  const offsetMs = zone === undefined || zone === '' ? 0 : offsetAt(zone, ms)
  const text = new Date(ms + offsetMs).toISOString().slice(0, 19)
  return offsetMs === 0 ? `${text}Z` : text + offsetText(offsetMs, ':')
}

function offsetText(offsetMs: number, colon: string): string {
  const minutes = Math.abs(offsetMs) / 60_000
  const digits = [Math.floor(minutes / 60), minutes % 60].map((part) => String(part).padStart(2, '0'))
  return (offsetMs < 0 ? '-' : '+') + digits.join(colon)
}

/** RFC 1123 with a numeric zone, as Go writes it: `Mon, 02 Jan 2006 15:04:05 +0000`. */
export function mailTime(ms: number): string {
  return new Date(ms).toUTCString().replace('GMT', '+0000')
}
