/**
 * The navigation of a cluster: its views, and its kinds in groups that people look for, custom kinds included. Outside of
 * clusters: the views of the management server.
 */
import type { VNode } from 'preact'

import type { Kind } from '../api/kinds.ts'
import { kindsOfCluster, reloadKinds } from '../browser/kinds-of-cluster.ts'
import { session } from '../browser/session.ts'
import { keptQuery } from '../grid/grid-row.tsx'
import { viewsOf } from '../pages/cluster-views.ts'
import { groupKinds, qualified, titleOf } from '../parts/kind-groups.ts'
import { Link, location } from '../routing/router.tsx'
import { serverViewsFor } from '../server/server-views.ts'
import { useFreshKinds } from './fresh-kinds.ts'

export function Navigation({ cluster }: { readonly cluster: string }): VNode {
  useFreshKinds(cluster)
  const { kinds, isLoading, error } = kindsOfCluster(cluster).value
  return (
    <>
      <ul class="side-top">
        <li>
          <Link to={{ page: 'cluster', cluster }} current={location.value.page.page === 'cluster'}>
            Overview
          </Link>
        </li>
        {viewsOf(kinds).map(({ name, title }) => (
          <li key={name}>
            <Link to={{ page: 'cluster-view', cluster, view: name }} query={keptQuery()} current={isView(name)}>
              {title}
            </Link>
          </li>
        ))}
      </ul>
      {groupKinds(kinds).map(({ title, isOpen, kinds: listed }) => (
        <details key={title} open={isOpen}>
          <summary>{title}</summary>
          <ul>
            {listed.map((kind) => (
              <KindLink key={qualified(kind)} cluster={cluster} kind={kind} />
            ))}
          </ul>
        </details>
      ))}
      {isLoading && kinds.length === 0 && <p class="loading">Loading kinds …</p>}
      {error && (
        <p class="side-error" role="alert">
          {error.message}{' '}
          <button type="button" class="quiet" onClick={() => reloadKinds(cluster)}>
            Try again
          </button>
        </p>
      )}
    </>
  )
}

/** Outside of clusters. `hyperkube up` has no users and no views of its own. */
export function ServerNavigation(): VNode | null {
  const { mode, user = null } = session.value ?? {}
  if (mode !== 'many-clusters' || user === null) return null
  return (
    <ul class="side-top">
      <li>
        <Link to={{ page: 'clusters' }} current={location.value.page.page === 'clusters'}>
          Clusters
        </Link>
      </li>
      {serverViewsFor(user).map(({ name, title }) => (
        <li key={name}>
          <Link to={{ page: 'server-view', view: name, item: '' }} current={isView(name)}>
            {title}
          </Link>
        </li>
      ))}
    </ul>
  )
}

function isView(name: string): boolean {
  const { page } = location.value
  return (page.page === 'cluster-view' || page.page === 'server-view') && page.view === name
}

function KindLink({ cluster, kind }: { readonly cluster: string; readonly kind: Kind }): VNode {
  const { page } = location.value
  const isCurrent =
    (page.page === 'list' || page.page === 'object') &&
    page.kind.plural === kind.plural &&
    page.kind.group === kind.group
  return (
    <li>
      <Link
        to={{ page: 'list', cluster, kind }}
        query={kind.isNamespaced ? keptQuery() : {}}
        title={qualified(kind)}
        current={isCurrent}
      >
        {titleOf(kind)}
      </Link>
    </li>
  )
}
