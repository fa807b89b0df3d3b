/** The columns that a list shows: those of `kubectl get`, or of `-o wide` with `wide=1` in the address. */
import type { Column } from '../lists/messages.ts'
import { location } from '../routing/router.tsx'

export interface VisibleColumn {
  readonly column: Column
  /** Its index among the cells of a row. */
  readonly at: number
}

export function visibleColumns(columns: readonly Column[]): readonly VisibleColumn[] {
  const isWide = location.value.query['wide'] === '1'
  return columns.map((column, at) => ({ column, at })).filter(({ column }) => isWide || column.priority === 0)
}

export function isAge({ name }: Column): boolean {
  return name === 'Age'
}
