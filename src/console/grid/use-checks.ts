/** The checked rows of a list. They are forgotten when the page shows another list. */
import { useState } from 'preact/hooks'

import type { OpenList } from '../lists/list-client.ts'
import type { Row } from '../lists/messages.ts'

export interface Checks {
  /** By uid. */
  readonly rows: ReadonlyMap<string, Row>
  readonly toggle: (row: Row) => void
  /** Checks the rows that fit the filter, up to `MAX_CHECKED`. */
  readonly checkAll: () => void
  readonly clear: () => void
}

const MAX_CHECKED = 2000

export function useChecks(list: OpenList): Checks {
  const [checked, setChecked] = useState<{ readonly list: OpenList; readonly rows: ReadonlyMap<string, Row> }>()
  const rows = checked?.list === list ? checked.rows : NO_ROWS
  const set = (next: ReadonlyMap<string, Row>): void => setChecked({ list, rows: next })
  return {
    rows,
    toggle(row) {
      const next = new Map(rows)
      if (!next.delete(row.uid)) next.set(row.uid, row)
      set(next)
    },
    checkAll: () =>
      void list.pick(MAX_CHECKED).then((picked) => set(new Map(picked.map((row) => [row.uid, row] as const)))),
    clear: () => set(NO_ROWS),
  }
}

const NO_ROWS: ReadonlyMap<string, Row> = new Map()
