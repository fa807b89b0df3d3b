/**
 * Marks agents as disconnected in the status of their Clusters if the replica that had their tunnels has died. Runs
 * on the leader.
 */
import type { ApiClient } from '#client/api-client.ts'
import { aborted } from '#lib/abort.ts'
import { every } from '#lib/clock.ts'
import type { Logger } from '#lib/log/log.ts'
import { isConflict, isNotFound } from '#meta/status.ts'

import { type Cluster, Clusters } from '../kinds/cluster.ts'
import type { ManagementObjects } from '../objects.ts'

export interface LostAgentsOptions {
  readonly objects: Pick<ManagementObjects, 'list' | 'clock'>
  /** Refuses writes when this replica no longer leads. */
  readonly client: ApiClient
  readonly isAlive: (replica: string) => boolean
  readonly log: Logger
}

const LOOK_MS = 3000

/** Looks at all clusters every few seconds, until the signal is aborted. */
export async function recordLostAgents(options: LostAgentsOptions, signal: AbortSignal): Promise<void> {
  let looking: Promise<void> | undefined
  const look = (): void => {
    looking ??= lookOnce(options, signal).finally(() => {
      looking = undefined
    })
  }
  look()
  const timer = every(options.objects.clock, LOOK_MS, look)
  await aborted(signal)
  timer.cancel()
  await looking
}

async function lookOnce({ objects, client, isAlive, log }: LostAgentsOptions, signal: AbortSignal): Promise<void> {
  for (const cluster of objects.list(Clusters)) {
    const lost = withoutAgent(cluster, isAlive, objects.clock.now())
    if (lost === undefined || signal.aborted) continue
    try {
      await client.updateStatus(Clusters, lost, { signal })
    } catch (error) {
      // The agent is back: another replica has written that.
      if (isConflict(error) || isNotFound(error) || signal.aborted) continue
      log.error(error, 'Failed to mark agent as disconnected', { cluster: cluster.metadata.name })
    }
  }
}

/** Undefined: the agent is away already, or its replica is alive. */
export function withoutAgent(
  cluster: Cluster,
  isAlive: (replica: string) => boolean,
  nowMs: number,
): Cluster | undefined {
  const agent = cluster.status?.agent
  if (agent?.connectedAt === undefined || agent.disconnectedAt !== undefined) return undefined
  if (agent.replica !== undefined && isAlive(agent.replica)) return undefined
  const { replica: _, ...before } = agent
  return {
    ...cluster,
    status: { ...cluster.status, agent: { ...before, disconnectedAt: new Date(nowMs).toISOString() } },
  }
}
