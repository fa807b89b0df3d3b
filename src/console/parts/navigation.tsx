/** The navigation of a cluster: its kinds in groups that people look for, custom kinds included. */
import type { VNode } from 'preact'

import type { Kind } from '../api/kinds.ts'
import { kindsOfCluster, reloadKinds } from '../browser/kinds-of-cluster.ts'
import { Link, location } from '../routing/router.tsx'
import { keptQuery } from './grid-row.tsx'
import { groupKinds, qualified, titleOf } from './kind-groups.ts'

export function Navigation({ cluster }: { readonly cluster: string }): VNode {
  const { kinds, isLoading, error } = kindsOfCluster(cluster).value
  return (
    <>
      <ul class="side-top">
        <li>
          <Link to={{ page: 'cluster', cluster }} current={location.value.page.page === 'cluster'}>
            Overview
          </Link>
        </li>
        <li>
          <Link to={{ page: 'create', cluster }} query={keptQuery()} current={location.value.page.page === 'create'}>
            Create
          </Link>
        </li>
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
