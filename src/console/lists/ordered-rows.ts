/** Holds the rows of a list, and those that fit the filter in their order. */
import { countGroups } from './groups.ts'
import type { Column, FromWorker, ListView, Row, RowGroup } from './messages.ts'
import { applyChanges, filterOf, orderBy } from './order.ts'

export type RowWindow = Pick<FromWorker, 'shown' | 'from' | 'rows' | 'groups'>

export class OrderedRows {
  readonly #rows = new Map<string, Row>()
  /** By uid: what the rows that changed since the order was made were then. */
  #changed = new Map<string, Row | undefined>()
  /** Ascending. */
  #ordered: readonly Row[] = []
  /** The filter and the column that `#ordered` has. */
  #orderedBy = ''
  #counted: { readonly rows: readonly Row[]; readonly column: string; readonly groups: readonly RowGroup[] } = {
    rows: [],
    column: '',
    groups: [],
  }
  columns: readonly Column[] = []

  get size(): number {
    return this.#rows.size
  }

  put(row: Row): void {
    this.#remember(row.uid)
    this.#rows.set(row.uid, row)
  }

  delete(uid: string): void {
    this.#remember(uid)
    this.#rows.delete(uid)
  }

  /** Replaces all rows in one step. */
  replace(rows: Iterable<Row>): void {
    this.#rows.clear()
    for (const row of rows) this.#rows.set(row.uid, row)
    this.#orderedBy = ''
  }

  /** The part of the rows that a view shows. The descending order is the reverse of the ascending one. */
  window(view: ListView): RowWindow {
    const { isDescending, count } = view
    const rows = this.#inOrder(view)
    const shown = rows.length
    const from = Math.max(0, Math.min(view.from, shown - count))
    const groups = this.#groupsOf(rows, view.group)
    if (!isDescending) return { shown, from, groups, rows: rows.slice(from, from + count) }
    return { shown, from, groups, rows: rows.slice(Math.max(0, shown - from - count), shown - from).reverse() }
  }

  #groupsOf(rows: readonly Row[], column: string): readonly RowGroup[] {
    const { rows: counted, column: by } = this.#counted
    if (counted !== rows || by !== column)
      this.#counted = { rows, column, groups: countGroups(rows, column, this.columns) }
    return this.#counted.groups
  }

  #remember(uid: string): void {
    if (!this.#changed.has(uid)) this.#changed.set(uid, this.#rows.get(uid))
  }

  #inOrder({ filter, sort }: ListView): readonly Row[] {
    const fits = filterOf(filter, this.columns) ?? (() => true)
    const order = orderBy(sort, this.columns)
    const key = JSON.stringify([filter, sort, this.columns.length])
    if (key !== this.#orderedBy) {
      this.#ordered = order.sort([...this.#rows.values()].filter(fits))
      this.#orderedBy = key
    } else if (this.#changed.size > 0) {
      const fitting = (row: Row | undefined): Row | undefined => (row !== undefined && fits(row) ? row : undefined)
      const changes = [...this.#changed].map(([uid, row]) => ({
        before: fitting(row),
        after: fitting(this.#rows.get(uid)),
      }))
      this.#ordered = applyChanges(this.#ordered, changes, order.compare)
    }
    this.#changed = new Map()
    return this.#ordered
  }
}
