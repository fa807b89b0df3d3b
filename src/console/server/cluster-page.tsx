/** The page of one cluster at the management server: head, actions, tabs. A watch keeps it fresh. */
import type { ComponentType, VNode } from 'preact'
import { useRef } from 'preact/hooks'

import type { ListState } from '../lists/messages.ts'
import { Freshness } from '../objects/object-head.tsx'
import type { OperationViewProps } from '../operations/operation-view.tsx'
import { Lazy } from '../parts/lazy.tsx'
import { Notice } from '../parts/notice.tsx'
import type { ServerViewProps } from '../parts/view-props.ts'
import { Link, location } from '../routing/router.tsx'
import { ClusterActions } from './cluster-actions.tsx'
import { ClusterTag } from './cluster-link.tsx'
import { ClusterOverview } from './cluster-overview.tsx'
import { type ClusterTab, type ClusterTabProps, tabsFor } from './cluster-tabs.ts'
import { type ManagedCluster, SOURCES } from './clusters.ts'
import { RemovalReport } from './remove-dialog.tsx'
import { useClusters } from './use-clusters.ts'

export function ManagedClusterPage(props: ServerViewProps): VNode {
  return (
    <>
      <ClusterOrMissing {...props} />
      <RemovalReport />
    </>
  )
}

function ClusterOrMissing({ item }: ServerViewProps): VNode {
  const { clusters, state } = useClusters()
  const last = useRef<ManagedCluster>(undefined)
  const cluster = clusters.find(({ metadata }) => metadata.name === item)
  if (cluster !== undefined) last.current = cluster
  if (cluster === undefined) return <MissingCluster item={item} state={state} last={last.current} />
  const tabs = tabsFor(cluster)
  const { tab = '' } = location.value.query
  return (
    <>
      <ClusterHead cluster={cluster} />
      <Freshness state={state} deletedAtMs={undefined} />
      <TabLinks tabs={tabs} current={tab} item={item} />
      <div class={state.type === 'stale' ? 'is-old' : undefined}>
        <TabContent key={tab} tab={tabs.find(({ name }) => name === tab)} props={{ cluster }} />
      </div>
    </>
  )
}

interface MissingClusterProps {
  readonly item: string
  readonly state: ListState
  /** The last state of a cluster that was here. */
  readonly last: ManagedCluster | undefined
}

function MissingCluster({ item, state, last }: MissingClusterProps): VNode {
  if (state.type === 'loading') return <p class="loading">Loading …</p>
  if (state.type !== 'live') return <Notice title={`The cluster ${item} cannot be loaded`} text={state.message} />
  const isGone = last?.metadata.name === item
  const operation = isGone ? last.status?.build?.operation : undefined
  return (
    <>
      <Notice
        title={isGone ? `${last.spec.displayName} was removed` : `There is no cluster ${item}`}
        text={isGone ? 'Or you are no member of it any more.' : 'It was removed, or you are no member of it.'}
      >
        <Link to={{ page: 'clusters' }}>All clusters</Link>
      </Notice>
      {operation !== undefined && <Lazy load={loadOperation} props={{ cluster: item, name: operation, ...FINAL }} />}
    </>
  )
}

/** The Operation of a removal says what is left on machines. */
const FINAL = { version: '', isStale: false }

async function loadOperation(): Promise<ComponentType<OperationViewProps>> {
  const { OperationView } = await import('../operations/operation-view.tsx')
  return OperationView
}

function ClusterHead({ cluster }: ClusterTabProps): VNode {
  const { metadata, spec } = cluster
  return (
    <header class="object-head">
      <p class="crumbs">
        <span>{`Cluster ${metadata.name ?? ''}, ${SOURCES[spec.source]}`}</span>
        <Link to={{ page: 'server-view', view: 'members', item: metadata.name ?? '' }}>Members</Link>
        <Link to={{ page: 'server-view', view: 'projects', item: metadata.name ?? '' }}>Projects</Link>
      </p>
      <div class="page-head">
        <h1>
          <bdi>{spec.displayName}</bdi>
        </h1>
        <ClusterTag cluster={cluster} />
        <span class="bar-space" />
        <ClusterActions cluster={cluster} />
      </div>
      {(spec.description ?? '') !== '' && <p class="muted">{spec.description}</p>}
    </header>
  )
}

interface TabLinksProps {
  readonly tabs: readonly ClusterTab[]
  readonly current: string
  readonly item: string
}

function TabLinks({ tabs, current, item }: TabLinksProps): VNode | null {
  if (tabs.length < 2) return null
  return (
    <nav class="tabs" aria-label="Parts of the cluster">
      {tabs.map(({ name, title }) => (
        <Link
          key={name}
          to={{ page: 'server-view', view: 'clusters', item }}
          query={{ tab: name }}
          current={name === current}
        >
          {title}
        </Link>
      ))}
    </nav>
  )
}

interface TabContentProps {
  readonly tab: ClusterTab | undefined
  readonly props: { readonly cluster: ManagedCluster }
}

function TabContent({ tab, props }: TabContentProps): VNode {
  if (tab === undefined) return <Notice title="This tab does not exist" text="This cluster has no such tab for you." />
  if (tab.load === undefined) return <ClusterOverview {...props} />
  const load: () => Promise<ComponentType<ClusterTabProps>> = tab.load
  return <Lazy load={load} props={props} />
}
