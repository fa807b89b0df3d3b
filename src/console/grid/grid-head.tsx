/** The head of a list: each column sorts by a click, and by a second one the other way round. */
import type { VNode } from 'preact'

import { location, setQuery } from '../routing/router.tsx'
import type { Checks } from './use-checks.ts'
import { isAge, type VisibleColumn } from './visible-columns.ts'

export interface GridHeadProps {
  readonly columns: readonly VisibleColumn[]
  readonly showNamespace: boolean
  /** Default: rows cannot be checked, and columns do not sort. */
  readonly checks?: Checks
}

export function GridHead({ columns, showNamespace, checks }: GridHeadProps): VNode {
  if (checks === undefined) return <PlainHead columns={columns} showNamespace={showNamespace} />
  return (
    <thead>
      <tr>
        <th scope="col" class="cell-check">
          <input
            type="checkbox"
            aria-label="Check all rows"
            checked={checks.rows.size > 0}
            onChange={checks.rows.size > 0 ? checks.clear : checks.checkAll}
          />
        </th>
        {showNamespace && <Header name="Namespace" sort="@namespace" />}
        {columns.map(({ column, at }) => (
          <Header key={at} name={column.name} sort={isAge(column) ? '@age' : column.name} title={column.description} />
        ))}
      </tr>
    </thead>
  )
}

function PlainHead({ columns, showNamespace }: GridHeadProps): VNode {
  return (
    <thead>
      <tr>
        {showNamespace && <th scope="col">Namespace</th>}
        {columns.map(({ column, at }) => (
          <th key={at} scope="col" title={column.description}>
            {column.name}
          </th>
        ))}
      </tr>
    </thead>
  )
}

interface HeaderProps {
  readonly name: string
  readonly sort: string
  readonly title?: string
}

function Header({ name, sort, title = '' }: HeaderProps): VNode {
  const { sort: current = '', desc = '' } = location.value.query
  const isSorted = current === sort
  const isDescending = isSorted && desc === '1'
  const direction = isDescending ? 'descending' : 'ascending'
  return (
    <th scope="col" title={title} aria-sort={isSorted ? direction : 'none'}>
      <button type="button" onClick={() => setQuery({ sort, desc: isSorted && !isDescending ? '1' : '' })}>
        {name}
        <span aria-hidden="true" class="arrow">
          {isSorted && (isDescending ? '↓' : '↑')}
        </span>
      </button>
    </th>
  )
}
