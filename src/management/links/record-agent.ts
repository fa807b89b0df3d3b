/**
 * Writes to the status of a Cluster when its agent connected, to which replica of the server, and when it
 * disconnected.
 */
import { type Cluster, Clusters } from '../kinds/cluster.ts'
import type { ManagementObjects } from '../objects.ts'
import type { ConnectedAgent } from './agent-routes.ts'

export interface AgentRecord {
  readonly cluster: string
  /** Undefined: the last tunnel of the cluster on this replica has ended. */
  readonly agent: ConnectedAgent | undefined
  /** The id of this replica. */
  readonly replica: string
}

/** Never rejects. */
export async function recordAgent(objects: ManagementObjects, record: AgentRecord): Promise<void> {
  const { cluster } = record
  const now = new Date(objects.clock.now()).toISOString()
  try {
    await objects.change(Clusters, cluster, (current) => withAgent(current, record, now), { subresource: 'status' })
  } catch (error) {
    // A removed cluster has no status any more, and a server that stops writes none.
    objects.log.info('Failed to record the connection of an agent', { cluster, err: (error as Error).message })
  }
}

/** Undefined: nothing changes, because the agent has connected to another replica meanwhile. */
export function withAgent(current: Cluster, { agent, replica }: AgentRecord, now: string): Cluster | undefined {
  const { connectedAt = now, replica: holder, ...before } = current.status?.agent ?? {}
  if (agent === undefined && holder !== undefined && holder !== replica) return undefined
  const next =
    agent === undefined
      ? { ...before, connectedAt, disconnectedAt: now }
      : { version: agent.version, address: agent.address, replica, connectedAt: now }
  return { ...current, status: { ...current.status, agent: next } }
}
