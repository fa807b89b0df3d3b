/** The first page: the clusters of this server. */
import type { VNode } from 'preact'

import { session } from '../browser/session.ts'
import { Link } from '../routing/router.tsx'
import { ManagedClustersPage } from '../server/clusters-page.tsx'

export function ClustersPage(): VNode {
  if (session.value?.mode === 'many-clusters') return <ManagedClustersPage />
  return (
    <section class="page">
      <h1>Clusters</h1>
      <div class="cards">
        {session.value?.clusters?.map(({ name, displayName }) => (
          <article key={name} class="card">
            <h2>
              <Link to={{ page: 'cluster', cluster: name }}>{displayName}</Link>
            </h2>
          </article>
        ))}
      </div>
    </section>
  )
}
