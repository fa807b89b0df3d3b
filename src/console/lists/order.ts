/** Filters and sorts rows. The order of rows that did not change is kept, so an update costs one pass over the list. */
import type { Cell, Column, Row } from './messages.ts'

export type Compare = (a: Row, b: Row) => number

/** The order by a column; by namespace and name for an unknown one, and between equal rows. */
export function comparerOf(sort: string, isDescending: boolean, columns: readonly Column[]): Compare {
  const by = keyComparer(sort, columns)
  const sign = isDescending ? -1 : 1
  return by === undefined ? byAddress : (a, b) => sign * by(a, b) || byAddress(a, b)
}

function keyComparer(sort: string, columns: readonly Column[]): Compare | undefined {
  if (sort === '@namespace') return (a, b) => compareText(a.namespace, b.namespace)
  if (sort === '@name') return (a, b) => compareText(a.name, b.name)
  // The youngest object has the smallest age.
  if (sort === '@age') return (a, b) => b.createdAt - a.createdAt
  const at = columns.findIndex(({ name }) => name === sort)
  return at < 0 ? undefined : (a, b) => compareCells(a.cells[at], b.cells[at])
}

function byAddress(a: Row, b: Row): number {
  return compareText(a.namespace, b.namespace) || compareText(a.name, b.name) || compareText(a.uid, b.uid)
}

function compareText(a: string, b: string): number {
  return a < b ? -1 : Number(a > b)
}

/** Numbers, also in front of a text such as `3 (2d ago)` and `1/2`, as numbers; other texts without regard to case. */
export function compareCells(a: Cell | undefined, b: Cell | undefined): number {
  if (typeof a === 'number' && typeof b === 'number') return a - b
  const [left, right] = [String(a ?? ''), String(b ?? '')]
  const [x, y] = [Number.parseFloat(left), Number.parseFloat(right)]
  if (!Number.isNaN(x) && !Number.isNaN(y) && x !== y) return x - y
  return compareText(left.toLowerCase(), right.toLowerCase())
}

export type Fits = (row: Row) => boolean

/**
 * Words that a row must contain, in any order: `web`, `-completed` (must not), `app=web` (a label), `status:running` (a
 * column). Undefined: every row fits.
 */
export function filterOf(text: string, columns: readonly Column[]): Fits | undefined {
  const words = text.toLowerCase().split(/\s+/).filter(Boolean)
  const tests = words.map((word) =>
    word.length > 1 && word.startsWith('-') ? not(testOf(word.slice(1), columns)) : testOf(word, columns),
  )
  if (tests.length === 0) return undefined
  return (row) => tests.every((test) => test(row))
}

function not(test: Fits): Fits {
  return (row) => !test(row)
}

function testOf(word: string, columns: readonly Column[]): Fits {
  const [, label, value] = /^([^=:]+)=(.*)$/.exec(word) ?? []
  if (label !== undefined) return (row) => row.labels[label]?.toLowerCase() === value
  const [, column = '', part = ''] = /^([^:]+):(.*)$/.exec(word) ?? []
  const at = columns.findIndex(({ name }) => name.toLowerCase().replaceAll(' ', '-') === column)
  if (at >= 0) return (row) => textOf(row.cells[at]).includes(part)
  if (column === 'namespace') return (row) => row.namespace.includes(part)
  return (row) =>
    row.name.includes(word) || row.namespace.includes(word) || row.cells.some((cell) => textOf(cell).includes(word))
}

function textOf(cell: Cell | undefined): string {
  return typeof cell === 'string' ? cell.toLowerCase() : String(cell ?? '')
}

/** Puts changed rows into an ordered list of rows. `removed` has the uids that are gone or changed. */
export function merge(
  ordered: readonly Row[],
  removed: ReadonlySet<string>,
  added: readonly Row[],
  compare: Compare,
): Row[] {
  const fresh = [...added].sort(compare)
  const out: Row[] = []
  let at = 0
  for (const row of ordered) {
    if (removed.has(row.uid)) continue
    for (let next = fresh[at]; next !== undefined && compare(next, row) < 0; next = fresh[++at]) out.push(next)
    out.push(row)
  }
  for (; at < fresh.length; at++) out.push(fresh[at] as Row)
  return out
}
