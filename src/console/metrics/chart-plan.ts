/** Decides what a line chart draws: its scale, the paths of its lines and where its marks are. */
import type { Resource, Use } from './amount.ts'
import { EVERY_MS } from './history.ts'

export interface Line {
  readonly name: string
  /** One value for each time; undefined where there is none. */
  readonly values: readonly (number | undefined)[]
}

/** A fixed amount, such as a limit. */
export interface Mark {
  readonly name: string
  readonly value: number
  /** All that there is. The chart reaches up to it, however little is used. */
  readonly isWhole?: boolean
}

export interface ChartPlan {
  /** The amount at the upper edge. */
  readonly top: number
  readonly fromMs: number
  readonly toMs: number
  /** Path data, in the order of the lines. */
  readonly paths: readonly string[]
  /** The last reading of each line, as path data of a dot. */
  readonly ends: readonly string[]
  /** Those inside the chart, with their height. */
  readonly marks: readonly (Mark & { readonly y: number })[]
}

export const WIDTH = 600
export const HEIGHT = 120
/** A chart shows at least so much time, so that the first readings are no wide zigzag. */
const MIN_SPAN_MS = 300_000
/** The line ends where readings are missing for longer: the page was hidden. */
const MAX_GAP_MS = 4 * EVERY_MS
/** Marks that are higher than this many times the use would press the lines to the ground. */
const MAX_MARK = 4

export interface ChartData {
  readonly resource: Resource
  readonly timesMs: readonly number[]
  readonly lines: readonly Line[]
  readonly marks: readonly Mark[]
}

export function planChart({ resource, timesMs, lines, marks }: ChartData): ChartPlan {
  const toMs = timesMs.at(-1) ?? 0
  const fromMs = Math.min(timesMs[0] ?? 0, toMs - MIN_SPAN_MS)
  const most = Math.max(0, ...lines.map(({ values }) => Math.max(0, ...values.map((value) => value ?? 0))))
  const shown = marks.filter(({ value, isWhole }) => value > 0 && (isWhole === true || value <= most * MAX_MARK))
  const top = niceTop(Math.max(most, ...shown.map(({ value }) => value)), resource === 'memory' ? 1024 : 1000)
  const x = (timeMs: number): number => round((WIDTH * (timeMs - fromMs)) / (toMs - fromMs))
  const y = (value: number): number => round(HEIGHT - (HEIGHT * value) / top)
  return {
    top,
    fromMs,
    toMs,
    paths: lines.map(({ values }) => pathOf(timesMs, values, { x, y })),
    ends: lines.map(({ values }) => endOf(timesMs, values, { x, y })),
    marks: shown.map((mark) => ({ ...mark, y: y(mark.value) })),
  }
}

interface Scale {
  readonly x: (timeMs: number) => number
  readonly y: (value: number) => number
}

function pathOf(timesMs: readonly number[], values: readonly (number | undefined)[], { x, y }: Scale): string {
  const parts: string[] = []
  let beforeMs = -Infinity
  timesMs.forEach((timeMs, at) => {
    const value = values[at]
    if (value === undefined) return
    const isFirst = timeMs - beforeMs > MAX_GAP_MS
    // A reading is the average of the time before it.
    parts.push(isFirst ? `M${x(timeMs - EVERY_MS)} ${y(value)}H${x(timeMs)}` : `L${x(timeMs)} ${y(value)}`)
    beforeMs = timeMs
  })
  return parts.join('')
}

function endOf(timesMs: readonly number[], values: readonly (number | undefined)[], { x, y }: Scale): string {
  const at = values.findLastIndex((value) => value !== undefined)
  return at < 0 ? '' : `M${x(timesMs[at] ?? 0)} ${y(values[at] ?? 0)}h0`
}

function round(value: number): number {
  return Math.round(value * 10) / 10
}

/** The amount or a little more: one or two digits of a unit. */
function niceTop(most: number, base: number): number {
  if (most <= 0) return 1
  const unit = base ** Math.floor(Math.log(most) / Math.log(base))
  const step = (unit * 10 ** Math.floor(Math.log10(most / unit))) / 2
  return Math.ceil(most / step) * step
}

/** The smallest and greatest value of a line, and its last. Undefined without values. */
export function rangeOf({
  values,
}: Line): { readonly least: number; readonly most: number; readonly last: number } | undefined {
  const known = values.filter((value) => value !== undefined)
  const last = known.at(-1)
  return last === undefined ? undefined : { least: Math.min(...known), most: Math.max(...known), last }
}

/** Reads one resource of every point. */
export function valuesOf(uses: readonly (Use | undefined)[], resource: keyof Use): readonly (number | undefined)[] {
  return uses.map((use) => use?.[resource])
}
