/**
 * The rows of a list in a window that scrolls. Only the rows in sight are in the document, so any number of objects costs
 * the same.
 */
import type { RefObject, VNode } from 'preact'
import { useEffect, useRef, useState } from 'preact/hooks'

import { every, now } from '../browser/time.ts'
import type { FromWorker, Row } from '../lists/messages.ts'
import type { KindInUrl } from '../routing/location.ts'
import { go } from '../routing/router.tsx'
import { GridColumns, sumOf, useWidths } from './grid-columns.tsx'
import { GridHead } from './grid-head.tsx'
import { useGridKeys } from './grid-keys.ts'
import { GridRow, keptQuery } from './grid-row.tsx'
import { rowsInSight, spacersOf } from './row-window.ts'
import type { Checks } from './use-checks.ts'
import { type VisibleColumn, visibleColumns } from './visible-columns.ts'

export interface GridProps {
  readonly data: FromWorker | undefined
  readonly cluster: string
  readonly kind: KindInUrl
  readonly showNamespace: boolean
  readonly checks: Checks
  /** Called when other rows come in sight. */
  readonly onVisible: (from: number, count: number) => void
}

export function Grid({ data, cluster, kind, showNamespace, checks, onVisible }: GridProps): VNode {
  const box = useRef<HTMLDivElement>(null)
  const nowMs = useNow()
  const { shown: total = 0, from = 0, rows = [] } = data ?? {}
  const show = useRowsInSight(box, total, onVisible)
  const columns = visibleColumns(data?.columns ?? [])
  const widths = useWidths(columns, rows, showNamespace)
  const [before, after] = spacersOf({ total, from, count: rows.length })
  const open = (row: Row): void =>
    go({ page: 'object', cluster, kind, namespace: row.namespace, name: row.name, tab: '' }, keptQuery())
  const { selected, select, onKeyDown } = useGridKeys({ data, box, open, check: checks.toggle })
  const isStale = data?.state.type === 'stale'
  return (
    <div
      class={isStale ? 'grid is-stale' : 'grid'}
      ref={box}
      onScroll={show}
      tabIndex={0}
      role="region"
      aria-label="Objects"
      onKeyDown={onKeyDown}
    >
      <table aria-rowcount={total + 1} style={{ minWidth: sumOf(widths) }}>
        <GridColumns widths={widths} wideAt={wideColumn(columns, showNamespace)} />
        <GridHead columns={columns} showNamespace={showNamespace} checks={checks} />
        <tbody>
          <Spacer px={before} span={columns.length + 2} />
          {rows.map((row, at) => (
            <GridRow
              key={row.uid}
              {...{ row, columns, cluster, kind, showNamespace, nowMs, open }}
              index={from + at + 2}
              isSelected={row.uid === selected}
              isChecked={checks.rows.has(row.uid)}
              check={checks.toggle}
              select={() => select(row)}
            />
          ))}
          <Spacer px={after} span={columns.length + 2} />
        </tbody>
      </table>
    </div>
  )
}

/** The column of names takes the space that is left. Events have none: -1. */
function wideColumn(columns: readonly VisibleColumn[], showNamespace: boolean): number {
  const at = columns.findIndex(({ column }) => column.name === 'Name')
  return at >= 0 && showNamespace ? at + 1 : at
}

/** Takes the height of the rows that are not in the document. */
function Spacer({ px, span }: { readonly px: number; readonly span: number }): VNode | null {
  return px <= 0 ? null : (
    <tr aria-hidden="true" class="spacer" style={{ height: `${px}px` }}>
      <td colSpan={span} />
    </tr>
  )
}

/** Reports the rows in sight now and when the box changes its size. Returns a function that reports them again. */
function useRowsInSight(
  box: RefObject<HTMLDivElement | null>,
  total: number,
  onVisible: (from: number, count: number) => void,
): () => void {
  const show = (): void => {
    const { scrollTop = 0, clientHeight = 0 } = box.current ?? {}
    const { from, count } = rowsInSight({ total, scrollTop, clientHeight })
    onVisible(from, count)
  }
  useEffect(() => {
    const observer = new ResizeObserver(show)
    if (box.current !== null) observer.observe(box.current)
    return () => observer.disconnect()
  }, [total])
  return show
}

/** The time, anew every second. */
function useNow(): number {
  const [time, setTime] = useState(now())
  useEffect(() => every(1000, () => setTime(now())), [])
  return time
}
