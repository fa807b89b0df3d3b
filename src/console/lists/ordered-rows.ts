/** Holds the rows of a list, and those that fit the filter in their order. */
import type { Column, ListView, Row } from './messages.ts'
import { comparerOf, filterOf, merge } from './order.ts'

export class OrderedRows {
  readonly #rows = new Map<string, Row>()
  /** Uids of rows that changed since the order was made. */
  #changed = new Set<string>()
  #ordered: Row[] = []
  /** The filter and the sort order that `#ordered` has. */
  #orderedBy = ''
  columns: readonly Column[] = []

  get size(): number {
    return this.#rows.size
  }

  put(row: Row): void {
    this.#rows.set(row.uid, row)
    this.#changed.add(row.uid)
  }

  delete(uid: string): void {
    if (this.#rows.delete(uid)) this.#changed.add(uid)
  }

  /** Replaces all rows in one step. */
  replace(rows: Iterable<Row>): void {
    this.#rows.clear()
    for (const row of rows) this.#rows.set(row.uid, row)
    this.#orderedBy = ''
  }

  /** All rows that fit the filter, in order. */
  ordered({ filter, sort, isDescending }: Omit<ListView, 'from' | 'count'>): readonly Row[] {
    const fits = filterOf(filter, this.columns)
    const compare = comparerOf(sort, isDescending, this.columns)
    const key = JSON.stringify([filter, sort, isDescending, this.columns.length])
    if (key !== this.#orderedBy) {
      const rows = [...this.#rows.values()]
      this.#ordered = (fits === undefined ? rows : rows.filter(fits)).sort(compare)
      this.#orderedBy = key
    } else if (this.#changed.size > 0) {
      const added = [...this.#changed].flatMap((uid) => this.#rows.get(uid) ?? [])
      this.#ordered = merge(this.#ordered, this.#changed, fits === undefined ? added : added.filter(fits), compare)
    }
    this.#changed = new Set()
    return this.#ordered
  }
}
