/** Counts rows by the values of a column. */
import type { Column, Row, RowGroup } from './messages.ts'

const MAX_GROUPS = 30

/** The most frequent values first. Empty without a column. */
export function countGroups(rows: readonly Row[], by: string, columns: readonly Column[]): readonly RowGroup[] {
  const at = columns.findIndex(({ name }) => name === by)
  if (at < 0 && by !== '@namespace') return []
  const counts = new Map<string, number>()
  for (const { namespace, cells } of rows) {
    const value = at < 0 ? namespace : String(cells[at] ?? '')
    counts.set(value, (counts.get(value) ?? 0) + 1)
  }
  return [...counts]
    .map(([value, count]) => ({ value, count }))
    .sort((a, b) => b.count - a.count || (a.value < b.value ? -1 : 1))
    .slice(0, MAX_GROUPS)
}
