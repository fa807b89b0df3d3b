/** Decides what to do with a cluster of this machine. */
import { isBeingDeleted } from '#meta/object.ts'

import type { Cluster } from '../kinds/cluster.ts'
import type { FoundCluster } from './programs.ts'

export type UpAction = 'start' | 'stop' | 'remove' | 'none'

/** `found` is undefined if the cluster does not exist on this machine. */
export function planUpCluster(cluster: Cluster, found: FoundCluster | undefined): UpAction {
  if (isBeingDeleted(cluster)) return 'remove'
  const isWanted = cluster.spec.up?.running !== false
  const isRunning = found?.endpoint !== undefined
  if (isWanted === isRunning) return 'none'
  return isWanted ? 'start' : 'stop'
}
