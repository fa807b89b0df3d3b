/** The keys of a list: they select the next or previous row, open it, or check it. */
import type { RefObject } from 'preact'
import { useState } from 'preact/hooks'

import type { FromWorker, Row } from '../lists/messages.ts'
import { scrollTopFor } from './row-window.ts'

export interface GridKeysOptions {
  readonly data: Pick<FromWorker, 'rows' | 'from' | 'shown'> | undefined
  readonly box: RefObject<HTMLDivElement | null>
  readonly open: (row: Row) => void
  readonly check: (row: Row) => void
}

export interface GridKeys {
  /** The uid of a row. Empty: none. */
  readonly selected: string
  readonly select: (row: Row) => void
  readonly onKeyDown: (event: KeyboardEvent) => void
}

export function useGridKeys({ data, box, open, check }: GridKeysOptions): GridKeys {
  const [selected, setSelected] = useState('')
  const { rows = [], from = 0, shown: total = 0 } = data ?? {}
  const onKeyDown = (event: KeyboardEvent): void => {
    const at = indexForKey(event, rows, selected)
    const row = at === undefined ? undefined : rows[at]
    if (at === undefined || row === undefined) return
    event.preventDefault()
    if (event.key === 'Enter') return open(row)
    if (event.key === ' ') return check(row)
    setSelected(row.uid)
    if (box.current !== null) box.current.scrollTop = scrollTopFor(from + at, { ...viewportOf(box.current), total })
  }
  return { selected, select: ({ uid }) => setSelected(uid), onKeyDown }
}

function viewportOf({ scrollTop, clientHeight }: HTMLDivElement): {
  readonly scrollTop: number
  readonly clientHeight: number
} {
  return { scrollTop, clientHeight }
}

const STEPS: Readonly<Record<string, number>> = { ArrowDown: 1, j: 1, ArrowUp: -1, k: -1, Enter: 0, ' ': 0 }

/** The index of the row that a key selects or acts on; undefined for other keys. */
function indexForKey(event: KeyboardEvent, rows: readonly Row[], selected: string): number | undefined {
  const step = STEPS[event.key]
  if (step === undefined || event.ctrlKey || event.metaKey || event.altKey) return undefined
  // Enter and Space on a link or a button are theirs.
  if (step === 0 && event.target !== event.currentTarget) return undefined
  const at = rows.findIndex(({ uid }) => uid === selected)
  if (at < 0) return step === 0 ? undefined : 0
  return Math.min(rows.length - 1, Math.max(0, at + step))
}
