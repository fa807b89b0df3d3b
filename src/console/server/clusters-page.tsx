/** The first page of a management server: all clusters of the user, those that need attention first. */
import type { VNode } from 'preact'
import { useState } from 'preact/hooks'

import { hasRight, session } from '../browser/session.ts'
import type { ListState } from '../lists/messages.ts'
import { Notice } from '../parts/notice.tsx'
import { Link, location, setQuery } from '../routing/router.tsx'
import { ClusterCard } from './cluster-card.tsx'
import { ImportDialog, UpDialog } from './cluster-dialogs.tsx'
import { byAttention, fittingClusters } from './cluster-order.ts'
import { ClusterTable } from './cluster-table.tsx'
import type { ManagedCluster } from './clusters.ts'
import { useClusters } from './use-clusters.ts'

/** More clusters are a table. */
const MAX_CARDS = 12

export function ManagedClustersPage(): VNode {
  const { clusters, state } = useClusters()
  if (state.type === 'loading' && clusters.length === 0) return <p class="loading">Loading …</p>
  if (state.type === 'failed') return <Notice title="The server refused the list of clusters" text={state.message} />
  const { q = '' } = location.value.query
  const fitting = byAttention(fittingClusters(clusters, q))
  return (
    <section class="page">
      <header class="page-head">
        <h1>Clusters</h1>
        {(clusters.length > MAX_CARDS || q !== '') && <FilterField value={q} />}
        <ClustersState state={state} all={clusters.length} shown={fitting.length} />
        <span class="bar-space" />
        <AddClusters />
      </header>
      {clusters.length === 0 ? <NoClusters state={state} /> : <Clusters clusters={fitting} all={clusters.length} />}
    </section>
  )
}

interface ClustersProps {
  /** Those that fit the filter. */
  readonly clusters: readonly ManagedCluster[]
  readonly all: number
}

function Clusters({ clusters, all }: ClustersProps): VNode {
  if (clusters.length === 0) {
    return (
      <Notice title={`The filter hides all ${all} clusters`} text={`Filter: ${location.value.query['q']}`}>
        <button type="button" onClick={() => setQuery({ q: '' })}>
          Clear the filter
        </button>
      </Notice>
    )
  }
  if (all > MAX_CARDS) return <ClusterTable clusters={clusters} />
  return (
    <div class="cards">
      {clusters.map((cluster) => (
        <ClusterCard key={cluster.metadata.name} cluster={cluster} />
      ))}
    </div>
  )
}

function NoClusters({ state }: { readonly state: ListState }): VNode {
  if (state.type === 'stale') return <Notice title="The clusters cannot be loaded" text={state.message} />
  const text = mayAddClusters()
    ? 'Build one on machines, import one, or let the owner of a cluster make you a member.'
    : 'The owner of a cluster can make you a member of it. Creating clusters needs the global role clusters-create.'
  return <Notice title="You have no clusters" text={text} />
}

function FilterField({ value }: { readonly value: string }): VNode {
  return (
    <input
      type="search"
      class="filter"
      value={value}
      placeholder="Filter (/)"
      aria-label="Filter: words, -word"
      aria-keyshortcuts="/"
      onInput={({ currentTarget }) => setQuery({ q: currentTarget.value })}
    />
  )
}

interface ClustersStateProps {
  readonly state: ListState
  readonly all: number
  readonly shown: number
}

function ClustersState({ state, all, shown }: ClustersStateProps): VNode {
  const count = shown === all ? String(all) : `${shown} of ${all}`
  if (state.type !== 'stale') return <span class="state state-live">{count}</span>
  return (
    <span class="state state-stale" role="status" title={state.message}>
      {`${count}, as of ${new Date(state.sinceMs).toLocaleTimeString()}. Reconnecting …`}
    </span>
  )
}

function mayAddClusters(): boolean {
  return hasRight('add clusters')
}

function AddClusters(): VNode | null {
  const [dialog, setDialog] = useState<'import' | 'up'>()
  const close = (): void => setDialog(undefined)
  if (!mayAddClusters()) return null
  return (
    <div class="actions">
      <Link to={{ page: 'server-view', view: 'build', item: '' }} class="button primary">
        Build a cluster
      </Link>
      <button type="button" onClick={() => setDialog('import')}>
        Import a cluster …
      </button>
      {session.value?.user?.isAdministrator === true && (
        <button type="button" onClick={() => setDialog('up')}>
          Start a cluster here …
        </button>
      )}
      {dialog === 'import' && <ImportDialog close={close} />}
      {dialog === 'up' && <UpDialog close={close} />}
    </div>
  )
}
