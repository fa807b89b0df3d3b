/** The first page: the clusters of this server. */
import type { ComponentType, VNode } from 'preact'

import { session } from '../browser/session.ts'
import { Lazy } from '../parts/lazy.tsx'
import { Link } from '../routing/router.tsx'

export function ClustersPage(): VNode {
  if (session.value?.mode === 'many-clusters') return <Lazy load={loadManaged} props={{}} />
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

async function loadManaged(): Promise<ComponentType> {
  const { ManagedClustersPage } = await import('../server/clusters-page.tsx')
  return ManagedClustersPage
}
