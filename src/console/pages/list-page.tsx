/** The list of any kind, with the columns that kubectl prints. Its state is in the address. */
import type { VNode } from 'preact'
import { useEffect, useMemo, useRef } from 'preact/hooks'

import { clusterPath, listPath } from '../api/kinds.ts'
import { kindsOfCluster } from '../browser/kinds-of-cluster.ts'
import { openList } from '../lists/list-client.ts'
import type { FromWorker, ListView } from '../lists/messages.ts'
import { Grid } from '../parts/grid.tsx'
import { ListNotice, StateLine } from '../parts/list-state.tsx'
import { NamespaceSelect } from '../parts/namespace-select.tsx'
import type { Page } from '../routing/location.ts'
import { location, setQuery } from '../routing/router.tsx'

export type ListPageProps = Omit<Extract<Page, { page: 'list' }>, 'page'>

const FIRST_ROWS = 60

export function ListPage({ cluster, kind }: ListPageProps): VNode {
  const { query } = location.value
  const { ns = '', q = '', labels = '', fields = '' } = query
  const known = kindsOfCluster(cluster).value.kinds.find(
    (one) => one.plural === kind.plural && one.group === kind.group,
  )
  const visible = useRef({ from: 0, count: FIRST_ROWS })
  const list = useMemo(() => {
    const selectors = new URLSearchParams({
      ...(labels !== '' && { labelSelector: labels }),
      ...(fields !== '' && { fieldSelector: fields }),
    }).toString()
    const path = clusterPath(cluster, listPath(kind, ns)) + (selectors === '' ? '' : `?${selectors}`)
    return openList({ path }, viewOf(query, visible.current))
  }, [cluster, kind.group, kind.version, kind.plural, ns, labels, fields])
  useEffect(() => () => list.close(), [list])
  useEffect(() => list.setView(viewOf(query, visible.current)), [list, q, query['sort'], query['desc']])
  const data = list.data.value
  const showNamespace = known?.isNamespaced !== false && ns === ''
  return (
    <section class="page page-list">
      <header class="page-head">
        <h1>{known?.kind ?? kind.plural}</h1>
        {known?.isNamespaced !== false && <NamespaceSelect cluster={cluster} namespace={ns} />}
        <FilterField value={q} />
        <StateLine data={data} />
      </header>
      {isEmpty(data) ? (
        <ListNotice data={data} filter={q} namespace={ns} kind={kind.plural} />
      ) : (
        <Grid
          data={data}
          cluster={cluster}
          kind={kind}
          showNamespace={showNamespace}
          onVisible={(from, count) => {
            visible.current = { from, count }
            list.setView(viewOf(location.value.query, visible.current))
          }}
        />
      )}
    </section>
  )
}

function isEmpty(data: FromWorker | undefined): data is FromWorker {
  return data !== undefined && data.shown === 0 && data.state.type !== 'loading'
}

function viewOf(
  { q: filter = '', sort = '', desc = '' }: Readonly<Record<string, string>>,
  rows: Pick<ListView, 'from' | 'count'>,
): ListView {
  return { filter, sort, isDescending: desc === '1', ...rows }
}

function FilterField({ value }: { readonly value: string }): VNode {
  return (
    <input
      type="search"
      class="filter"
      value={value}
      placeholder="Filter (/)"
      aria-label="Filter: words, -word, label=value, column:value"
      aria-keyshortcuts="/"
      onInput={({ currentTarget }) => setQuery({ q: currentTarget.value })}
    />
  )
}
