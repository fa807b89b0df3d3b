/** Spans of time as people write them, such as `90s`, `1h30m` or `7d`. */
import { durationMs } from './go/duration.ts'

/** `90s`, `1h30m`, `24h`, `7d`, or milliseconds. */
export type Span = string | number

const DAY_MS = 24 * 3_600_000

/** Go's durations, optionally with leading days. Throws Go's text. */
export function spanMs(span: Span): number {
  if (typeof span === 'number') return span
  const [, days, rest = ''] = /^(?:(\d+)d)?(.*)$/.exec(span) ?? []
  return Number(days ?? 0) * DAY_MS + (days !== undefined && rest === '' ? 0 : durationMs(rest))
}
