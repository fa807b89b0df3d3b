/** The pods of an object as a list with the columns of kubectl, live from the worker. */
import type { VNode } from 'preact'
import { useEffect, useMemo } from 'preact/hooks'

import { clusterPath, listPath } from '../api/kinds.ts'
import { StateLine } from '../grid/list-state.tsx'
import { openList } from '../lists/list-client.ts'
import type { Column, Row } from '../lists/messages.ts'
import { ObjectLink } from '../objects/object-link.tsx'
import type { PodsOf } from '../objects/pods-of.ts'
import { AgeText } from '../parts/age-text.tsx'
import { toneOf } from '../parts/tone.ts'
import { Link } from '../routing/router.tsx'

const PODS = { group: '', version: 'v1', plural: 'pods' }
const SHOWN = 50

export interface PodsViewProps {
  readonly cluster: string
  readonly pods: PodsOf
}

export function PodsView({ cluster, pods }: PodsViewProps): VNode {
  const { namespace, labels, fields } = pods
  const list = useMemo(() => {
    const query = new URLSearchParams({
      ...(labels !== '' && { labelSelector: labels }),
      ...(fields !== '' && { fieldSelector: fields }),
    })
    const path = `${clusterPath(cluster, listPath(PODS, namespace))}?${query.toString()}`
    return openList({ path }, { filter: '', sort: '@name', isDescending: false, group: '', from: 0, count: SHOWN })
  }, [cluster, namespace, labels, fields])
  useEffect(() => () => list.close(), [list])
  const data = list.data.value
  const columns = (data?.columns ?? [])
    .map((column, at) => ({ column, at }))
    .filter(({ column }) => column.priority === 0)
  const query = { ns: namespace, labels, fields }
  return (
    <section class="box box-wide">
      <h2>
        Pods <StateLine data={data} />
      </h2>
      {data?.state.type === 'failed' && <p class="words words-bad">{data.state.message}</p>}
      {data !== undefined && data.loaded === 0 && data.state.type === 'live' && <p class="muted">There are none.</p>}
      {data !== undefined && data.rows.length > 0 && <PodTable cluster={cluster} rows={data.rows} columns={columns} />}
      {data !== undefined && data.shown > data.rows.length && (
        <Link to={{ page: 'list', cluster, kind: PODS }} query={query}>
          {`All ${data.shown.toLocaleString('en')} pods`}
        </Link>
      )}
    </section>
  )
}

interface PodTableProps {
  readonly cluster: string
  readonly rows: readonly Row[]
  readonly columns: readonly { readonly column: Column; readonly at: number }[]
}

function PodTable({ cluster, rows, columns }: PodTableProps): VNode {
  return (
    <div class="scroll" tabIndex={0} role="region" aria-label="Pods">
      <table class="plain">
        <thead>
          <tr>
            {columns.map(({ column }) => (
              <th key={column.name} scope="col">
                {column.name}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {rows.map((row) => (
            <PodRow key={row.uid} {...{ cluster, row, columns }} />
          ))}
        </tbody>
      </table>
    </div>
  )
}

interface PodRowProps extends Omit<PodTableProps, 'rows'> {
  readonly row: Row
}

function PodRow({ cluster, row, columns }: PodRowProps): VNode {
  const { name, namespace } = row
  return (
    <tr>
      {columns.map(({ column, at }) => {
        const text = String(row.cells[at] ?? '')
        const tone = toneOf(column.name, text, row.cells)
        const to = { apiVersion: 'v1', kind: 'Pod', name, namespace }
        if (at === 0) {
          return (
            <td key={column.name}>
              <ObjectLink cluster={cluster} to={to} />
            </td>
          )
        }
        if (column.name === 'Age')
          return <td key={column.name}>{row.createdAt > 0 && <AgeText time={row.createdAt} />}</td>
        return <td key={column.name}>{tone === undefined ? text : <span class={`tone tone-${tone}`}>{text}</span>}</td>
      })}
    </tr>
  )
}
