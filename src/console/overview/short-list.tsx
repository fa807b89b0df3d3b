/** The first rows of a list inside another page, live, with a link to the whole list. */
import type { VNode } from 'preact'
import { useEffect, useMemo } from 'preact/hooks'

import { clusterPath, type KindAddress, listPath } from '../api/kinds.ts'
import { now } from '../browser/time.ts'
import { GridHead } from '../grid/grid-head.tsx'
import { GridRow } from '../grid/grid-row.tsx'
import { StateLine } from '../grid/list-state.tsx'
import { visibleColumns } from '../grid/visible-columns.ts'
import { openList } from '../lists/list-client.ts'
import type { FromWorker } from '../lists/messages.ts'
import { go, Link } from '../routing/router.tsx'

export interface ShortListProps {
  readonly title: string
  readonly cluster: string
  readonly kind: KindAddress
  readonly fields?: string
  readonly sort: string
  /** Shown when there is no row. */
  readonly nothing?: string
}

const ROWS = 10

export function ShortList({ title, cluster, kind, fields = '', sort, nothing = 'None.' }: ShortListProps): VNode {
  const list = useMemo(() => {
    const query = fields === '' ? '' : `?${new URLSearchParams({ fieldSelector: fields }).toString()}`
    const view = { filter: '', sort, isDescending: false, group: '', from: 0, count: ROWS }
    return openList({ path: clusterPath(cluster, listPath(kind)) + query }, view)
  }, [cluster, kind.plural, fields, sort])
  useEffect(() => () => list.close(), [list])
  const data = list.data.value
  return (
    <section class="short-list">
      <header>
        <h2>
          <Link to={{ page: 'list', cluster, kind }} query={{ ...(fields !== '' && { fields }), sort }}>
            {title}
          </Link>
        </h2>
        <StateLine data={data} />
      </header>
      {data?.state.type === 'failed' && <p class="cause">{data.state.message}</p>}
      {data?.state.type === 'live' && data.shown === 0 && <p class="muted">{nothing}</p>}
      {data !== undefined && data.rows.length > 0 && <ShortRows data={data} cluster={cluster} kind={kind} />}
    </section>
  )
}

interface ShortRowsProps extends Pick<ShortListProps, 'cluster' | 'kind'> {
  readonly data: FromWorker
}

function ShortRows({ data, cluster, kind }: ShortRowsProps): VNode {
  const columns = visibleColumns(data.columns)
  const showNamespace = data.rows.some(({ namespace }) => namespace !== '')
  return (
    <div class="short-rows">
      <table>
        <GridHead columns={columns} showNamespace={showNamespace} />
        <tbody>
          {data.rows.map((row, at) => (
            <GridRow
              key={row.uid}
              {...{ row, columns, cluster, kind, showNamespace }}
              nowMs={now()}
              index={at + 2}
              isSelected={false}
              select={() => undefined}
              open={({ namespace, name }) => go({ page: 'object', cluster, kind, namespace, name, tab: '' })}
            />
          ))}
        </tbody>
      </table>
    </div>
  )
}
