/** Formats times and ages as kubectl prints them. */

const SECOND = 1000
const MINUTE = 60 * SECOND
const HOUR = 60 * MINUTE
const DAY = 24 * HOUR

/** `45s`, `3m12s`, `5h20m`, `3d4h`, `41d`, `2y13d`. */
export function formatAge(ms: number): string {
  if (ms < 0) return '0s'
  if (ms < 2 * MINUTE) return `${Math.floor(ms / SECOND)}s`
  if (ms < 10 * MINUTE) return two(ms, [MINUTE, 'm'], [SECOND, 's'])
  if (ms < 3 * HOUR) return `${Math.floor(ms / MINUTE)}m`
  if (ms < 8 * HOUR) return two(ms, [HOUR, 'h'], [MINUTE, 'm'])
  if (ms < 2 * DAY) return `${Math.floor(ms / HOUR)}h`
  if (ms < 8 * DAY) return two(ms, [DAY, 'd'], [HOUR, 'h'])
  if (ms < 2 * 365 * DAY) return `${Math.floor(ms / DAY)}d`
  if (ms < 8 * 365 * DAY) return two(ms, [365 * DAY, 'y'], [DAY, 'd'])
  return `${Math.floor(ms / (365 * DAY))}y`
}

function two(ms: number, [unit, name]: [number, string], [smaller, small]: [number, string]): string {
  const rest = Math.floor((ms % unit) / smaller)
  return `${Math.floor(ms / unit)}${name}${rest === 0 ? '' : `${rest}${small}`}`
}
