/** Holds log lines of several containers in the order of their times, and those that fit a filter. */
import type { LogLine } from './messages.ts'

export const MAX_LINES = 1_000_000
/** So many lines are dropped at once, because that copies the others. */
const DROP_LINES = 50_000

type FitsFilter = (line: LogLine) => boolean

export class LogLines {
  readonly #maxLines: number
  #lines: LogLine[] = []
  #shown: LogLine[] = []
  #fits: FitsFilter | undefined
  dropped = 0

  constructor(maxLines: number = MAX_LINES) {
    this.#maxLines = maxLines
  }

  get total(): number {
    return this.#lines.length
  }

  /** The lines that fit the filter, in order. */
  get shown(): readonly LogLine[] {
    return this.#fits === undefined ? this.#lines : this.#shown
  }

  /** Throws SyntaxError for a regular expression that is not valid. */
  filter(text: string): void {
    this.#fits = filterOf(text)
    this.#shown = this.#fits === undefined ? [] : this.#lines.filter(this.#fits)
  }

  /** Adds lines of any sources. Most are younger than all others, so few lines move. */
  add(lines: readonly LogLine[]): void {
    const fresh = lines.toSorted(byTime)
    mergeAtEnd(this.#lines, fresh)
    if (this.#fits !== undefined) mergeAtEnd(this.#shown, fresh.filter(this.#fits))
    const excess = this.#lines.length - this.#maxLines
    if (excess <= 0) return
    const count = Math.min(this.#lines.length, excess + Math.min(DROP_LINES, Math.floor(this.#maxLines / 10)))
    const dropped = new Set(this.#lines.slice(0, count))
    this.#lines = this.#lines.slice(count)
    this.#shown = this.#shown.filter((line) => !dropped.has(line))
    this.dropped += count
  }
}

function byTime(a: LogLine, b: LogLine): number {
  return a.time < b.time ? -1 : Number(a.time > b.time)
}

/** Merges from the end. Lines of equal time stay in the order in which they came. */
function mergeAtEnd(lines: LogLine[], fresh: readonly LogLine[]): void {
  const tail: LogLine[] = []
  for (let at = fresh.length - 1; at >= 0;) {
    const line = fresh[at] as LogLine
    const last = lines.at(-1)
    if (last !== undefined && last.time > line.time) tail.push(lines.pop() as LogLine)
    else {
      tail.push(line)
      at--
    }
  }
  for (let at = tail.length - 1; at >= 0; at--) lines.push(tail[at] as LogLine)
}

function filterOf(text: string): FitsFilter | undefined {
  if (text === '') return undefined
  const [, pattern] = /^\/(.+)\/$/.exec(text) ?? []
  if (pattern !== undefined) {
    const expression = new RegExp(pattern, 'i')
    return (line) => expression.test(line.text)
  }
  const part = text.toLowerCase()
  return (line) => line.text.toLowerCase().includes(part)
}

/** Cuts `2026-11-19T05:00:00.000000001Z text` into time and text. */
export function lineOf(source: number, raw: string): LogLine {
  const space = raw.indexOf(' ')
  const time = raw.slice(0, space)
  if (space < 0 || !/^\d{4}-\d\d-\d\dT/.test(time)) return { source, time: '', text: raw }
  return { source, time, text: raw.slice(space + 1) }
}
