/**
 * Aligns text with tabs like Go's tabwriter: cells that end with a tab form columns, as wide as their widest cell in
 * consecutive lines. Text after the last tab belongs to no column.
 */
import type { Output } from './printer.ts'

export interface TabSettings {
  /** The minimum width of a column, with padding. */
  readonly minWidth: number
  readonly padding: number
  /** Columns never shrink, so that rows of a watch align with the headers. */
  readonly rememberWidths?: boolean
}

/** The settings of kubectl's tables. */
export const TABLE_TABS: TabSettings = { minWidth: 6, padding: 3, rememberWidths: true }

/** Buffers text until it is flushed. */
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

  /** The buffered text without alignment. */
  take(): string {
    const text = this.#pending
    this.#pending = ''
    return text
  }

  /** The buffered text in columns. */
  flush(): string {
    const lines = this.take()
      .split(/[\n\f]/)
      .map((line) => line.split(/[\t\v]/))
    const out: string[] = []
    this.#layOut(lines, [], out)
    return out.join('\n')
  }

  /** Aligns lines that have the given widths to their left. */
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

/** Calls back with a column writer and flushes it afterwards, even on failure; uses the given writer if it is one. */
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
