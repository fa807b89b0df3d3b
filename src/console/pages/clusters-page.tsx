/** The first page: the clusters of this server. */
import type { VNode } from 'preact'

import { session } from '../browser/session.ts'
import { Link } from '../routing/router.tsx'

export function ClustersPage(): VNode {
  const clusters = session.value?.clusters ?? []
  return (
    <section class="page">
      <h1>Clusters</h1>
      <ul class="cards">
        {clusters.map(({ name, displayName }) => (
          <li key={name}>
            <Link to={{ page: 'cluster', cluster: name }} class="card">
              {displayName}
            </Link>
          </li>
        ))}
      </ul>
    </section>
  )
}
