/** The widths of a list's columns. They only grow, so that columns do not move while the list scrolls or changes. */
import type { Row } from '../lists/messages.ts'
import { isAge, type VisibleColumn } from './visible-columns.ts'

const MAX_CHARACTERS = 48
/** `364d23h`. */
const AGE_CHARACTERS = 7
/** The arrow of the sorted column. */
const HEAD_MORE = 2

/** In characters, for the namespace and then each column. `before`: the widths for earlier rows of the same columns. */
export function widthsOf(
  columns: readonly VisibleColumn[],
  rows: readonly Row[],
  before: readonly number[] = [],
): readonly number[] {
  const widest = (least: number, textOf: (row: Row) => string): number =>
    Math.min(
      MAX_CHARACTERS,
      rows.reduce((most, row) => Math.max(most, textOf(row).length), least),
    )
  const widths = [
    widest(before[0] ?? 'Namespace'.length + HEAD_MORE, ({ namespace }) => namespace),
    ...columns.map(({ column, at }, index) => {
      const least = before[index + 1] ?? Math.max(column.name.length + HEAD_MORE, AGE_CHARACTERS)
      return isAge(column) ? least : widest(least, ({ cells }) => String(cells[at] ?? ''))
    }),
  ]
  return widths.length === before.length && widths.every((width, at) => width === before[at]) ? before : widths
}
