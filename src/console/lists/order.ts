/** Filters and sorts rows. Rows that change are moved in the order, so an update does not sort the whole list. */
import { partitionPoint } from '#lib/collections/partition-point.ts'

import type { Cell, Column, Row } from './messages.ts'

export interface RowOrder {
  /** 0 only for the same object. */
  readonly compare: (a: Row, b: Row) => number
  readonly sort: (rows: readonly Row[]) => Row[]
}

/** The ascending order by a column; by namespace and name for an unknown one, and between equal rows. */
export function orderBy(sort: string, columns: readonly Column[]): RowOrder {
  const keyOf = keyReader(sort, columns)
  if (keyOf === undefined) return { compare: byAddress, sort: (rows) => rows.toSorted(byAddress) }
  return {
    compare: (a, b) => compareCells(keyOf(a), keyOf(b)) || byAddress(a, b),
    sort: (rows) => sortByKeys(rows, keyOf),
  }
}

type ReadKey = (row: Row) => Cell | undefined

function keyReader(sort: string, columns: readonly Column[]): ReadKey | undefined {
  if (sort === '@namespace') return ({ namespace }) => namespace
  if (sort === '@name') return ({ name }) => name
  // The youngest object has the smallest age.
  if (sort === '@age') return ({ createdAt }) => -createdAt
  const at = columns.findIndex(({ name }) => name === sort)
  return at < 0 ? undefined : ({ cells }) => cells[at]
}

/** Reads each key once: a list is compared many times more often than it has rows. */
function sortByKeys(rows: readonly Row[], keyOf: ReadKey): Row[] {
  const numbers = new Float64Array(rows.length)
  const texts = rows.map((row, at) => {
    const key = keyOf(row)
    numbers[at] = numberOf(key)
    return textOf(key)
  })
  const order = [...rows.keys()].sort(
    (i, j) =>
      compareNumbers(numbers[i] as number, numbers[j] as number) ||
      compareText(texts[i] as string, texts[j] as string) ||
      byAddress(rows[i] as Row, rows[j] as Row),
  )
  return order.map((at) => rows[at] as Row)
}

function byAddress(a: Row, b: Row): number {
  return compareText(a.namespace, b.namespace) || compareText(a.name, b.name) || compareText(a.uid, b.uid)
}

/**
 * Numbers, also in front of a text such as `3 (2d ago)` and `1/2`, as numbers and before other texts; texts without
 * regard to case.
 */
export function compareCells(a: Cell | undefined, b: Cell | undefined): number {
  return compareNumbers(numberOf(a), numberOf(b)) || compareText(textOf(a), textOf(b))
}

function compareNumbers(a: number, b: number): number {
  return a < b ? -1 : Number(a > b)
}

function compareText(a: string, b: string): number {
  return a < b ? -1 : Number(a > b)
}

/** Infinity for a text that begins with no number. */
function numberOf(cell: Cell | undefined): number {
  const number = typeof cell === 'number' ? cell : Number.parseFloat(String(cell ?? ''))
  return Number.isNaN(number) ? Infinity : number
}

export type Fits = (row: Row) => boolean

/**
 * Words that a row must contain, in any order: `web`, `-completed` (must not), `app=web` (a label), `status:running` (a
 * column contains it), `status==running` (a column is it). Quotes keep words together. Undefined: every row fits.
 */
export function filterOf(text: string, columns: readonly Column[]): Fits | undefined {
  const words = (text.toLowerCase().match(WORD) ?? []).map((word) => word.replaceAll('"', ''))
  const tests = words.map((word) =>
    word.length > 1 && word.startsWith('-') ? not(testOf(word.slice(1), columns)) : testOf(word, columns),
  )
  if (tests.length === 0) return undefined
  return (row) => tests.every((test) => test(row))
}

/** Text without spaces, except between quotes. */
const WORD = /(?:[^\s"]|"[^"]*"?)+/g

function not(test: Fits): Fits {
  return (row) => !test(row)
}

function testOf(word: string, columns: readonly Column[]): Fits {
  const [, column = '', operator, part = ''] = /^([^=:]+)(:|==)(.*)$/s.exec(word) ?? []
  const read = columnReader(column, columns)
  // The quotes of the filter are gone; a value with quotes still has its own.
  if (read !== undefined)
    return operator === ':' ? (row) => read(row).includes(part) : (row) => read(row).replaceAll('"', '') === part
  const [, label, value] = /^([^=:]+)=(.*)$/.exec(word) ?? []
  if (label !== undefined) return (row) => row.labels[label]?.toLowerCase() === value
  return (row) =>
    row.name.includes(word) || row.namespace.includes(word) || row.cells.some((cell) => textOf(cell).includes(word))
}

function columnReader(word: string, columns: readonly Column[]): ((row: Row) => string) | undefined {
  const at = columns.findIndex(({ name }) => wordOf(name) === word)
  if (at >= 0) return ({ cells }) => textOf(cells[at])
  return word === 'namespace' ? ({ namespace }) => namespace : undefined
}

/** The name of a column in a filter, without the characters that have a meaning there. */
export function wordOf(column: string): string {
  return column.toLowerCase().replaceAll(' ', '-').replaceAll(/[":=]/g, '')
}

function textOf(cell: Cell | undefined): string {
  return typeof cell === 'string' ? cell.toLowerCase() : String(cell ?? '')
}

export interface RowChange {
  /** Undefined: the row is new. */
  readonly before: Row | undefined
  /** Undefined: the row is gone. */
  readonly after: Row | undefined
}

/** Applies changes to ordered rows. The rows in between are copied in runs, without being compared. */
export function applyChanges(
  ordered: readonly Row[],
  changes: readonly RowChange[],
  compare: RowOrder['compare'],
): Row[] {
  const removed = changes.flatMap(({ before }) => (before === undefined ? [] : [before]))
  const added = changes.flatMap(({ after }) => (after === undefined ? [] : [after])).sort(compare)
  const edits = [
    ...removed.map((row) => ({ at: positionOf(ordered, row, compare), row: undefined })),
    ...added.map((row) => ({ at: positionOf(ordered, row, compare), row })),
  ].sort((a, b) => a.at - b.at || Number(a.row === undefined) - Number(b.row === undefined))
  const runs: (readonly Row[])[] = []
  let done = 0
  for (const { at, row } of edits) {
    if (at > done) runs.push(ordered.slice(done, at))
    runs.push(row === undefined ? [] : [row])
    done = row === undefined ? at + 1 : Math.max(done, at)
  }
  runs.push(ordered.slice(done))
  return runs.flat()
}

/** The index of the row, or the one where it belongs. */
function positionOf(ordered: readonly Row[], row: Row, compare: RowOrder['compare']): number {
  return partitionPoint(0, ordered.length, (index) => compare(ordered[index] as Row, row) < 0)
}
