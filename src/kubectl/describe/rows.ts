/** The content of descriptions as data, and its renderer: rows of label and value, nested by level, aligned in columns. */
import { TabWriter } from '../print/tabs.ts'
import { escapeTerminal } from '../print/terminal-text.ts'

const DESCRIBE_TABS = { minWidth: 0, padding: 2 }

export type Value = string | number | bigint | boolean | undefined

/** Text beside a label: one line for each item, `<none>` without items. */
export interface Lines {
  readonly lines: readonly string[]
  /** Whether lines after the first keep the indentation, which matters only for text that is not aligned. */
  readonly isIndented?: boolean
}

/** Column names underlined with dashes, and rows. */
export interface Table {
  readonly columns: readonly string[]
  readonly rows: readonly (readonly Value[])[]
}

/** A line of several columns. */
export interface Cells {
  readonly cells: readonly Value[]
}

export interface Nested {
  readonly nested: readonly Part[]
}

/** Text without indentation and line end. */
export interface Verbatim {
  readonly verbatim: string
}

/** `Label:` and its value, or what belongs below it one level deeper. Undefined omits the row. */
export type Row = readonly [label: string, value: Value | Lines | Table | readonly Part[]]

/** A name and what belongs below it. */
export type NestedRow = readonly [label: string, parts: readonly Part[]]

/** A string is a line; an empty one has no indentation. */
export type Part = undefined | string | Row | Cells | Table | Nested | Verbatim

export function cells(...values: readonly Value[]): Cells {
  return { cells: values }
}

/** Parts one level deeper. */
export function nested(...parts: readonly Part[]): Nested {
  return { nested: parts }
}

/** Undefined without items, which omits the row. */
export function unlessEmpty<T>(items: readonly T[]): readonly T[] | undefined {
  return items.length === 0 ? undefined : items
}

/** Undefined for an empty text and 0, which omits the row. */
export function ifSet(value: Value): Value {
  return value || undefined
}

/** A missing value leaves the row empty. */
export function orEmpty(value: Value): Value {
  return value ?? ''
}

/** A table, or undefined without rows. */
export function tableOf(columns: readonly string[], rows: readonly (readonly Value[])[]): Table | undefined {
  return rows.length === 0 ? undefined : { columns, rows }
}

export function render(parts: readonly Part[]): string {
  return written(parts).flush()
}

/** Tabs stay in the text. */
export function renderUnaligned(parts: readonly Part[]): string {
  return written(parts).take()
}

function written(parts: readonly Part[]): TabWriter {
  const tabs = new TabWriter(DESCRIBE_TABS)
  for (const part of parts) write(tabs, 0, part)
  return tabs
}

function put(tabs: TabWriter, level: number, text: string): void {
  tabs.write(escapeTerminal('  '.repeat(level) + text))
}

function write(tabs: TabWriter, level: number, part: Part): void {
  if (part === undefined) return
  if (typeof part === 'string') put(tabs, part === '' ? 0 : level, `${part}\n`)
  else if ('verbatim' in part) put(tabs, 0, part.verbatim)
  else if ('cells' in part) put(tabs, level, `${part.cells.map((cell) => cell ?? '').join('\t')}\n`)
  else if ('nested' in part) for (const each of part.nested) write(tabs, level + 1, each)
  else if ('columns' in part) writeTable(tabs, level, part)
  else writeRow(tabs, level, part)
}

function writeTable(tabs: TabWriter, level: number, { columns, rows }: Table): void {
  const underlines = columns.map((name) => '-'.repeat(name.length))
  for (const row of [columns, underlines, ...rows]) write(tabs, level, { cells: row })
}

function writeRow(tabs: TabWriter, level: number, [label, value]: Row): void {
  if (value === undefined) return
  if (typeof value !== 'object') return put(tabs, level, `${label}:\t${value}\n`)
  if ('lines' in value) return writeLines(tabs, level, label, value)
  put(tabs, level, `${label}:\n`)
  for (const part of 'columns' in value ? [value] : value) write(tabs, level + 1, part)
}

function writeLines(tabs: TabWriter, level: number, label: string, { lines, isIndented }: Lines): void {
  const [first = '<none>', ...others] = lines
  put(tabs, level, `${label}:\t${first}\n`)
  for (const line of others) put(tabs, isIndented ? level : 0, `\t${line}\n`)
}
