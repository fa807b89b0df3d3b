/**
 * Functions that the cluster controllers of the management server share: their settings and the write of a Cluster's
 * status.
 */
import { type Condition, setCondition } from '#meta/conditions.ts'
import { semanticEqual } from '#meta/object.ts'
import type { ControllerContext } from '#reconcile/controller.ts'

import { Clusters, type ClusterStatus } from '../kinds/cluster.ts'
import type { ClusterLinks } from '../links/link.ts'
import type { ClusterTurns } from '../turns.ts'

export interface ManagementSettings {
  readonly links: ClusterLinks
  /** For all that is written into clusters. */
  readonly turns: ClusterTurns
}

export type Context = ControllerContext<ManagementSettings>

export type Finding = Pick<Condition, 'type' | 'status' | 'reason' | 'message'>

export interface Findings {
  readonly found?: Partial<ClusterStatus>
  readonly conditions: readonly Finding[]
}

/** Writes only what changed: each write wakes every watcher. */
export async function writeStatus(
  { client, cache, clock }: Context,
  name: string,
  { found = {}, conditions: findings }: Findings,
): Promise<void> {
  const cluster = cache.get(Clusters, name)
  if (cluster === undefined) return
  const conditions = (cluster.status?.conditions ?? []).map((condition) => ({ ...condition }))
  for (const finding of findings) setCondition(conditions, finding, clock)
  const status: ClusterStatus = { ...cluster.status, ...found, conditions }
  if (semanticEqual(status, cluster.status)) return
  await client.updateStatus(Clusters, { ...cluster, status })
}

export function timeout(clock: Context['clock'], ms: number): AbortSignal {
  const controller = new AbortController()
  clock.after(ms, () => controller.abort(new Error(`no answer within ${ms / 1000} s`)), { background: true })
  return controller.signal
}
