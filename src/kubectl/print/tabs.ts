/**
 * Columns from text with tabs, as Go's tabwriter lays them out: a cell that ends with a tab belongs to a column, and a column
 * is as wide as its widest cell among neighbouring lines. What follows the last tab of a line is in no column.
 */
import type { Output } from './printer.ts'

export interface TabSettings {
  /** Of a column, padding included. */
  readonly minWidth: number
  readonly padding: number
  /** A column never gets narrower than it was before: rows of a watch stay below their headers. */
  readonly rememberWidths?: boolean
}

/** What tables of kubectl have. */
export const TABLE_TABS: TabSettings = { minWidth: 6, padding: 3, rememberWidths: true }

/** Keeps what is written until it is flushed. */
export class TabWriter {
  readonly #settings: TabSettings
  readonly #remembered: number[] = []
  #pending = ''

  constructor(settings: TabSettings = TABLE_TABS) {
    this.#settings = settings
  }

  write(text: string): void {
    this.#pending += text
  }

  /** What was written since, as it is. */
  take(): string {
    const text = this.#pending
    this.#pending = ''
    return text
  }

  /** What was written since, in columns. */
  flush(): string {
    const lines = this.take()
      .split(/[\n\f]/)
      .map((line) => line.split(/[\t\v]/))
    const out: string[] = []
    this.#layOut(lines, [], out)
    return out.join('\n')
  }

  /** Lays out lines that have as many columns to the left as there are widths. */
  #layOut(lines: readonly (readonly string[])[], widths: readonly number[], out: string[]): void {
    const column = widths.length
    const hasColumn = (line: readonly string[] | undefined): boolean => line !== undefined && line.length - 1 > column
    for (let at = 0; at < lines.length;) {
      const line = lines[at] as readonly string[]
      if (!hasColumn(line)) {
        out.push(padded(line, widths))
        at++
        continue
      }
      let end = at
      while (hasColumn(lines[end])) end++
      const block = lines.slice(at, end)
      this.#layOut(block, [...widths, this.#widthOf(block, column)], out)
      at = end
    }
  }

  #widthOf(block: readonly (readonly string[])[], column: number): number {
    const { minWidth, padding, rememberWidths = false } = this.#settings
    const widest = block.reduce((width, line) => Math.max(width, textWidth(line[column] as string) + padding), minWidth)
    if (!rememberWidths) return widest
    const width = Math.max(widest, this.#remembered[column] ?? 0)
    this.#remembered[column] = width
    return width
  }
}

/** Hands a writer of columns to whoever writes rows, and lays them out afterwards, also when that fails; unless it is one already. */
export function withTabs(out: Output, write: (tabs: TabWriter) => void): void {
  if (out instanceof TabWriter) return write(out)
  const tabs = new TabWriter()
  try {
    write(tabs)
  } finally {
    out.write(tabs.flush())
  }
}

function padded(line: readonly string[], widths: readonly number[]): string {
  return line.map((cell, at) => cell + ' '.repeat(Math.max(0, (widths[at] ?? 0) - textWidth(cell)))).join('')
}

const BEYOND_BMP = /[\ud800-\udfff]/

/** In code points. */
function textWidth(text: string): number {
  return BEYOND_BMP.test(text) ? Array.from(text).length : text.length
}
