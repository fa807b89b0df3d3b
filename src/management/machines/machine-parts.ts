/**
 * Creates the parts of the management server for machines: tunnels, routes, links to clusters and the status
 * controller.
 */
import type { Controller } from '#reconcile/controller.ts'

import { type Machine, Machines } from '../kinds/machine.ts'
import type { MachineAgents } from '../links/agent-routes.ts'
import type { ClusterLinks } from '../links/link.ts'
import { createMachineTunnels, type MachineTunnels } from '../links/machine-tunnels.ts'
import { rememberRemoved } from '../links/removed-machines.ts'
import type { TunnelHub } from '../links/tunnel-hub.ts'
import type { ManagementObjects } from '../objects.ts'
import type { Route } from '../port/route.ts'
import type { Peers } from '../replicas/peers.ts'
import { machinesAcross, streamsForReplicas } from './across-replicas.ts'
import { type MachineWays, machineWays } from './builder-connection.ts'
import { withFallback } from './fallback-links.ts'
import { createMachineStatus, recordMachine } from './machine-status.ts'
import { machineRoutes, type MachineRoutesOptions } from './routes.ts'

export interface MachineParts {
  /** Of all replicas; only those of this one end with `disconnectAll`. */
  readonly tunnels: MachineTunnels
  /** The streams that other replicas open through this one. */
  readonly streams: Pick<TunnelHub, 'dial' | 'listen'>
  /** For the builder. */
  readonly ways: MachineWays
  /** The given links, and those through control plane machines. */
  readonly links: ClusterLinks
  readonly agents: MachineAgents
  readonly routes: readonly Route[]
  readonly controllers: readonly Controller<object>[]
  close(): void
}

export interface MachinePartsOptions extends MachineRoutesOptions {
  /** The links without machines. */
  readonly links: ClusterLinks
  readonly hub: Pick<TunnelHub, 'silentMs' | 'dial' | 'listen'>
  readonly peers: Pick<Peers, 'has' | 'dial' | 'link'>
}

export function createMachineParts(options: MachinePartsOptions): MachineParts {
  const { objects } = options
  const own = createMachineTunnels(objects.clock)
  const tunnels = machinesAcross(own, options.peers)
  objects.listen(Machines, (machine, isDeleted) => isDeleted && endMachine(machine, tunnels, objects))
  const links = withFallback({ ...options, machines: tunnels })
  return {
    tunnels,
    streams: streamsForReplicas(options.hub, own),
    ways: machineWays({ objects, machines: tunnels }),
    links,
    agents: { tunnels, onChange: (machine, agent) => void recordMachine(objects, machine, agent) },
    routes: machineRoutes(options),
    controllers: [createMachineStatus(tunnels)],
    close() {
      links.close()
      tunnels.disconnectAll()
    },
  }
}

/** Ends the tunnels of a removed machine, and stores its credential so that its agent gets 404. */
function endMachine(machine: Machine, tunnels: MachineTunnels, objects: ManagementObjects): void {
  tunnels.disconnect(machine.metadata.name ?? '')
  rememberRemoved(objects, machine).catch((error: unknown) =>
    objects.log.error(
      error,
      'Failed to store the credential of a removed machine; its agent cannot learn of the removal',
      { node: machine.spec.nodeName },
    ),
  )
}
