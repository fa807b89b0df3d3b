/** The overview of a cluster: how much is there, and what needs attention. */
import type { ComponentType, VNode } from 'preact'
import { useEffect, useState } from 'preact/hooks'

import { clusterPath, type KindAddress, listPath } from '../api/kinds.ts'
import { METADATA_ACCEPT, sendForJson } from '../api/request.ts'
import { kindsOfCluster } from '../browser/kinds-of-cluster.ts'
import { ShortList } from '../overview/short-list.tsx'
import { qualified } from '../parts/kind-groups.ts'
import { Lazy } from '../parts/lazy.tsx'
import { Link } from '../routing/router.tsx'

const core = (plural: string): KindAddress => ({ group: '', version: 'v1', plural })
const apps = (plural: string): KindAddress => ({ group: 'apps', version: 'v1', plural })

/** Each with its number of objects. */
const COUNTED: readonly (readonly [title: string, kind: KindAddress])[] = [
  ['Nodes', core('nodes')],
  ['Namespaces', core('namespaces')],
  ['Pods', core('pods')],
  ['Deployments', apps('deployments')],
  ['Stateful sets', apps('statefulsets')],
  ['Daemon sets', apps('daemonsets')],
  ['Services', core('services')],
  ['Volume claims', core('persistentvolumeclaims')],
]

export function ClusterPage({ cluster }: { readonly cluster: string }): VNode {
  const { kinds } = kindsOfCluster(cluster).value
  const served = new Set(kinds.map((kind) => qualified(kind)))
  const isServed = (kind: KindAddress): boolean => kinds.length === 0 || served.has(qualified(kind))
  return (
    <section class="page">
      <header class="page-head">
        <h1>Overview</h1>
        <Version cluster={cluster} />
      </header>
      <ul class="counts">
        {COUNTED.filter(([, kind]) => isServed(kind)).map(([title, kind]) => (
          <li key={title}>
            <Link to={{ page: 'list', cluster, kind }} class="count">
              <Count cluster={cluster} kind={kind} />
              {title}
            </Link>
          </li>
        ))}
      </ul>
      <Lazy load={loadUse} props={{ cluster }} />
      {isServed(core('nodes')) && <ShortList title="Nodes" cluster={cluster} kind={core('nodes')} sort="Status" />}
      <ShortList
        title="Pods that are not running"
        cluster={cluster}
        kind={core('pods')}
        fields="status.phase!=Running,status.phase!=Succeeded"
        sort="@age"
        nothing="All pods run or have completed."
      />
      <ShortList
        title="Warnings"
        cluster={cluster}
        kind={core('events')}
        fields="type=Warning"
        sort="@age"
        nothing="No warnings in the last hour."
      />
    </section>
  )
}

/** The lists do not wait for it. */
async function loadUse(): Promise<ComponentType<{ readonly cluster: string }>> {
  const { ClusterUse } = await import('../metrics/cluster-use.tsx')
  return ClusterUse
}

function Version({ cluster }: { readonly cluster: string }): VNode {
  const [version, setVersion] = useState('')
  useEffect(() => {
    sendForJson<{ gitVersion?: string }>(clusterPath(cluster, '/version')).then(
      ({ gitVersion = '' }) => setVersion(gitVersion),
      () => undefined,
    )
  }, [cluster])
  return <span class="state">{version}</span>
}

/** One object of the list is enough: the server says how many remain. */
function Count({ cluster, kind }: { readonly cluster: string; readonly kind: KindAddress }): VNode {
  const [count, setCount] = useState('…')
  useEffect(() => {
    sendForJson<CountedList>(clusterPath(cluster, `${listPath(kind)}?limit=1`), { accept: METADATA_ACCEPT }).then(
      ({ items, metadata }) => setCount(String((items?.length ?? 0) + (metadata?.remainingItemCount ?? 0))),
      () => setCount('–'),
    )
  }, [cluster, kind])
  return <strong>{count}</strong>
}

interface CountedList {
  readonly items?: readonly unknown[] | null
  readonly metadata?: { readonly remainingItemCount?: number }
}
