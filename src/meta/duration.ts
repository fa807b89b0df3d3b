/** Formats ages for people: `3h12m`. */
import { epochMsOf } from './time.ts'

/** For people: with a second unit if it matters, `5m30s`, `3h12m`, `2d4h`, `1y34d`. */
export function humanDuration(ms: number): string {
  const seconds = Math.trunc(ms / 1000)
  if (seconds < -1) return '<invalid>'
  if (seconds < 120) return `${Math.max(seconds, 0)}s`
  const minutes = Math.trunc(seconds / 60)
  if (minutes < 10) return twoUnits(minutes, 'm', seconds % 60, 's')
  if (minutes < 180) return `${minutes}m`
  const hours = Math.trunc(minutes / 60)
  if (hours < 8) return twoUnits(hours, 'h', minutes % 60, 'm')
  if (hours < 48) return `${hours}h`
  const days = Math.trunc(hours / 24)
  if (days < 8) return twoUnits(days, 'd', hours % 24, 'h')
  if (days < 365 * 2) return `${days}d`
  const years = Math.trunc(days / 365)
  return years < 8 ? twoUnits(years, 'y', days % 365, 'd') : `${years}y`
}

/** For people, in one unit: `5m`, `3h`, `2d`. */
export function shortHumanDuration(ms: number): string {
  const seconds = Math.trunc(ms / 1000)
  if (seconds < -1) return '<invalid>'
  if (seconds < 60) return `${Math.max(seconds, 0)}s`
  if (seconds < 3600) return `${Math.trunc(seconds / 60)}m`
  const hours = Math.trunc(seconds / 3600)
  if (hours < 24) return `${hours}h`
  return hours < 24 * 365 ? `${Math.trunc(hours / 24)}d` : `${Math.trunc(hours / 24 / 365)}y`
}

/** An age in tables. */
export function ageText(timestamp: string | undefined, nowMs: number): string {
  return timestamp === undefined ? '<unknown>' : humanDuration(nowMs - epochMsOf(timestamp))
}

function twoUnits(great: number, greatUnit: string, small: number, smallUnit: string): string {
  return small === 0 ? `${great}${greatUnit}` : `${great}${greatUnit}${small}${smallUnit}`
}
