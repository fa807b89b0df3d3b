/** One row of a list. */
import type { VNode } from 'preact'

import type { Column, Row } from '../lists/messages.ts'
import { formatAge } from '../parts/age.ts'
import { toneOf } from '../parts/tone.ts'
import type { KindInUrl } from '../routing/location.ts'
import { Link, location } from '../routing/router.tsx'
import { isAge, type VisibleColumn } from './visible-columns.ts'

export interface GridRowProps {
  readonly row: Row
  /** For readers of the screen: the first row of the list has index 2, behind the head. */
  readonly index: number
  readonly columns: readonly VisibleColumn[]
  readonly cluster: string
  readonly kind: KindInUrl
  readonly showNamespace: boolean
  readonly nowMs: number
  readonly isSelected: boolean
  readonly isChecked?: boolean
  /** Default: the row has no box to check. */
  readonly check?: (row: Row) => void
  readonly select: () => void
  readonly open: (row: Row) => void
}

export function GridRow(props: GridRowProps): VNode {
  const { row, index, columns, showNamespace, isSelected, isChecked = false, check, select, open } = props
  return (
    <tr
      aria-rowindex={index}
      aria-selected={isSelected}
      class={isSelected ? 'is-selected' : undefined}
      onClick={select}
      onDblClick={() => open(row)}
    >
      {check !== undefined && (
        <td class="cell-check">
          <input
            type="checkbox"
            tabIndex={-1}
            aria-label={`Check ${row.name}`}
            checked={isChecked}
            onChange={() => check(row)}
          />
        </td>
      )}
      {showNamespace && <td class="cell-namespace">{row.namespace}</td>}
      {columns.map(({ column, at }) => (
        <td key={at} class={classOf(column)}>
          {contentOf(props, column, at)}
        </td>
      ))}
    </tr>
  )
}

function contentOf({ row, cluster, kind, nowMs }: GridRowProps, column: Column, at: number): VNode | string {
  if (isAge(column)) return row.createdAt === 0 ? '' : formatAge(nowMs - row.createdAt)
  const text = String(row.cells[at] ?? '')
  if (at === 0) {
    const to = { page: 'object', cluster, kind, namespace: row.namespace, name: row.name, tab: '' } as const
    return (
      <Link to={to} query={keptQuery()} title={text}>
        {text}
      </Link>
    )
  }
  const tone = toneOf(column.name, text, row.cells)
  return tone === undefined ? text : <span class={`tone tone-${tone}`}>{text}</span>
}

function classOf({ name, type }: Column): string | undefined {
  if (name === 'Name') return 'cell-name'
  return type === 'integer' || type === 'number' ? 'cell-number' : undefined
}

/** The part of the query that goes on from page to page. */
export function keptQuery(): Record<string, string> {
  const { ns = '' } = location.value.query
  return ns === '' ? {} : { ns }
}
