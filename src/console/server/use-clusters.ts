/** The clusters that the user may see, kept fresh by a watch. The bar and the palette get their names. */
import { useEffect } from 'preact/hooks'

import { CLUSTERS_PATH } from '../api/cluster-paths.ts'
import { session } from '../browser/session.ts'
import type { ListState } from '../lists/messages.ts'
import { useLive } from '../objects/live.ts'
import type { ManagedCluster } from './clusters.ts'

export interface LiveClusters {
  readonly clusters: readonly ManagedCluster[]
  readonly state: ListState
}

export function useClusters(): LiveClusters {
  const { objects, state } = useLive(CLUSTERS_PATH)
  const clusters = objects as readonly ManagedCluster[]
  useEffect(() => {
    if (state.type === 'live') shareNames(clusters)
  }, [clusters, state.type])
  return { clusters, state }
}

function shareNames(clusters: readonly ManagedCluster[]): void {
  const { value } = session
  if (value === undefined) return
  const names = clusters.map(({ metadata, spec }) => ({ name: metadata.name ?? '', displayName: spec.displayName }))
  if (JSON.stringify(names) !== JSON.stringify(value.clusters)) session.value = { ...value, clusters: names }
}
