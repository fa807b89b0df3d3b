/** The list of any kind, with the columns that kubectl prints. Its state is in the address. */
import type { VNode } from 'preact'
import { useEffect, useMemo, useRef, useState } from 'preact/hooks'

import { clusterPath, listPath } from '../api/kinds.ts'
import { kindsOfCluster } from '../browser/kinds-of-cluster.ts'
import { BulkBar } from '../bulk/bulk-bar.tsx'
import { Grid } from '../grid/grid.tsx'
import { GroupBar } from '../grid/group-bar.tsx'
import { ListMenu } from '../grid/list-menu.tsx'
import { ListNotice, StateLine } from '../grid/list-state.tsx'
import { useChecks } from '../grid/use-checks.ts'
import { type OpenList, openList } from '../lists/list-client.ts'
import type { FromWorker, ListView } from '../lists/messages.ts'
import { NamespaceSelect } from '../parts/namespace-select.tsx'
import type { Page } from '../routing/location.ts'
import { location, setQuery } from '../routing/router.tsx'

export type ListPageProps = Omit<Extract<Page, { page: 'list' }>, 'page'>

export function ListPage({ cluster, kind }: ListPageProps): VNode {
  const { ns = '', q = '' } = location.value.query
  const known = kindsOfCluster(cluster).value.kinds.find(
    (one) => one.plural === kind.plural && one.group === kind.group,
  )
  const isNamespaced = known?.isNamespaced !== false
  const { list, onVisible } = useList({ cluster, kind, isKnown: known !== undefined })
  const checks = useChecks(list)
  const data = list.data.value
  return (
    <section class="page page-list">
      <header class="page-head">
        <h1>{known?.kind ?? kind.plural}</h1>
        {isNamespaced && <NamespaceSelect cluster={cluster} namespace={ns} />}
        <FilterField value={q} />
        <ListMenu columns={data?.columns ?? []} isNamespaced={isNamespaced} />
        <StateLine data={data} />
      </header>
      <GroupBar groups={data?.groups ?? []} />
      {/* Without the kind, discovery has not answered yet. */}
      {known !== undefined && (
        <BulkBar cluster={cluster} kind={known} rows={[...checks.rows.values()]} clear={checks.clear} />
      )}
      {isEmpty(data) ? (
        <ListNotice data={data} filter={q} namespace={ns} kind={kind.plural} />
      ) : (
        <Grid {...{ data, cluster, kind, checks, onVisible }} showNamespace={isNamespaced && ns === ''} />
      )}
    </section>
  )
}

const FIRST_ROWS = 60

interface FollowedList {
  readonly list: OpenList
  readonly onVisible: (from: number, count: number) => void
}

/** The list of the address, for as long as the page shows it. */
function useList({ cluster, kind, isKnown }: ListPageProps & { readonly isKnown: boolean }): FollowedList {
  const { query } = location.value
  const { ns = '', labels = '', fields = '', q, sort, desc, group } = query
  const visible = useRef({ from: 0, count: FIRST_ROWS })
  const [attempt, setAttempt] = useState(0)
  const list = useMemo(() => {
    const selectors = new URLSearchParams({
      ...(labels !== '' && { labelSelector: labels }),
      ...(fields !== '' && { fieldSelector: fields }),
    }).toString()
    const path = clusterPath(cluster, listPath(kind, ns)) + (selectors === '' ? '' : `?${selectors}`)
    return openList({ path }, viewOf(query, visible.current))
  }, [cluster, kind.group, kind.version, kind.plural, ns, labels, fields, attempt])
  useEffect(() => () => list.close(), [list])
  // The page was open before the kind was defined.
  useEffect(() => {
    const state = list.data.peek()?.state
    if (isKnown && state?.type === 'failed' && state.code === 404) setAttempt(attempt + 1)
  }, [isKnown])
  useEffect(() => list.setView(viewOf(query, visible.current)), [list, q, sort, desc, group])
  const onVisible = (from: number, count: number): void => {
    visible.current = { from, count }
    list.setView(viewOf(location.value.query, visible.current))
  }
  return { list, onVisible }
}

function isEmpty(data: FromWorker | undefined): data is FromWorker {
  return data !== undefined && data.shown === 0 && data.state.type !== 'loading'
}

function viewOf(
  { q: filter = '', sort = '', desc = '', group = '' }: Readonly<Record<string, string>>,
  rows: Pick<ListView, 'from' | 'count'>,
): ListView {
  return { filter, sort, isDescending: desc === '1', group, ...rows }
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
