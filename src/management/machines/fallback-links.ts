/**
 * Reaches the API server of a cluster through one of its control plane machines while the agent of the cluster is
 * disconnected.
 */
import { type Machine, Machines } from '../kinds/machine.ts'
import type { ClusterLink, ClusterLinks } from '../links/link.ts'
import type { MachineTunnels } from '../links/machine-tunnels.ts'
import type { ManagementObjects } from '../objects.ts'

export interface FallbackOptions {
  readonly links: ClusterLinks
  readonly machines: Pick<MachineTunnels, 'isConnected' | 'apiServer'>
  readonly objects: Pick<ManagementObjects, 'list'>
}

/** Workers never get requests of users: only a control plane could answer them. */
export function withFallback({ links, machines, objects }: FallbackOptions): ClusterLinks {
  const throughMachine = (cluster: string): ClusterLink | undefined => {
    const isUsable = ({ metadata, spec }: Machine): boolean =>
      spec.cluster === cluster && spec.roles.includes('controlplane') && machines.isConnected(metadata.name ?? '')
    const machine = objects.list(Machines).find(isUsable)
    const link = machine && machines.apiServer(machine.metadata.name ?? '')
    return link && { ...link, machine: machine?.spec.nodeName ?? '' }
  }
  return { get: (cluster) => links.get(cluster) ?? throughMachine(cluster) }
}
