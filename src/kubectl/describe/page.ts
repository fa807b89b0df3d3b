/** What a describer writes on: rows of a label and a value, indented by level, laid out in columns at the end. */
import { TabWriter } from '../print/tabs.ts'
import { escapeTerminal } from '../terminal-text.ts'

const DESCRIBE_TABS = { minWidth: 0, padding: 2 }

/** Something that stands behind a label. Nothing means that the row is left out. */
export type Value = string | number | bigint | boolean | undefined

export type Row = readonly [label: string, value: Value]

export class Page {
  readonly #tabs: TabWriter
  readonly #indent: number

  constructor(tabs: TabWriter = new TabWriter(DESCRIBE_TABS), indent = 0) {
    this.#tabs = tabs
    this.#indent = indent
  }

  /** The same page, where everything stands further in. */
  nested(levels: number): Page {
    return new Page(this.#tabs, this.#indent + levels)
  }

  /** Text as it is, behind the indentation of a level. Lines end where the text says. */
  put(level: number, text: string): void {
    this.#tabs.write(escapeTerminal('  '.repeat(level + this.#indent) + text))
  }

  line(level: number, ...cells: readonly Value[]): void {
    this.put(level, `${cells.map((cell) => cell ?? '').join('\t')}\n`)
  }

  /** `Label:` and the value, unless there is none. */
  row(level: number, label: string, value: Value): void {
    if (value !== undefined) this.line(level, `${label}:`, value)
  }

  /** Rows that are there also when their values are not. */
  fields(level: number, rows: readonly Row[]): void {
    for (const [label, value] of rows) this.line(level, `${label}:`, value)
  }

  rows(level: number, rows: readonly Row[]): void {
    for (const [label, value] of rows) this.row(level, label, value)
  }

  /** A label with lines below each other behind it; `<none>` when there are none. */
  lines(label: string, lines: readonly string[], margin = ''): void {
    const [first = '<none>', ...others] = lines
    this.put(0, `${margin}${label}:\t${first}\n`)
    for (const line of others) this.put(0, `${margin}\t${line}\n`)
  }

  /** A heading, names of columns with dashes below them, and rows. */
  table(level: number, columns: readonly string[], rows: readonly (readonly Value[])[]): void {
    this.line(level, ...columns)
    this.line(level, ...columns.map((name) => '-'.repeat(name.length)))
    for (const cells of rows) this.line(level, ...cells)
  }

  text(): string {
    return this.#tabs.flush()
  }

  /** As it was written: tabs are left to the terminal. */
  tabbedText(): string {
    return this.#tabs.take()
  }
}
