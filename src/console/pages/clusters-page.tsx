/** The first page: the clusters of this server. With one cluster, its overview. */
import type { ComponentType, VNode } from 'preact'
import { useEffect } from 'preact/hooks'

import { session } from '../browser/session.ts'
import { Lazy } from '../parts/lazy.tsx'
import { replacePage } from '../routing/router.tsx'

export function ClustersPage(): VNode {
  const { mode, clusters } = session.value ?? {}
  const only = mode === 'one-cluster' ? clusters?.[0]?.name : undefined
  useEffect(() => {
    if (only !== undefined) replacePage({ page: 'cluster', cluster: only })
  }, [only])
  return only === undefined ? <Lazy load={loadManaged} props={{}} /> : <p class="loading">Loading …</p>
}

async function loadManaged(): Promise<ComponentType> {
  const { ManagedClustersPage } = await import('../server/clusters-page.tsx')
  return ManagedClustersPage
}
