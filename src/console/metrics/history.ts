/** The readings of one page over time. It keeps the last hour while the tab is open. */
import type { Use } from './amount.ts'
import type { Reading } from './reading.ts'

export interface Point {
  readonly timeMs: number
  readonly total: Use
  /** Of the first parts by name. */
  readonly parts: Readonly<Record<string, Use>>
}

/** Kubelets measure so often, and the page reads so often. */
export const EVERY_MS = 15_000
/** An hour. */
export const MAX_POINTS = 240
/** Lines of one chart. */
export const MAX_LINES = 6

/** The older points and the new one, without those that are too many. */
export function withPoint(points: readonly Point[], timeMs: number, { total, parts }: Reading): readonly Point[] {
  const lines = parts.slice(0, MAX_LINES).map(({ name, use }) => [name, use] as const)
  return [...points.slice(1 - MAX_POINTS), { timeMs, total, parts: Object.fromEntries(lines) }]
}
