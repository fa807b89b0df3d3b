/**
 * Reaches machines whose agents are connected to another replica. Replicas name a machine `machine:<name>`, and its
 * services `machine:<name>:<service>`.
 */
import type { Duplex } from 'node:stream'

import type { MachineTunnels } from '../links/machine-tunnels.ts'
import type { TunnelHub } from '../links/tunnel-hub.ts'
import type { Peers } from '../replicas/peers.ts'

const PREFIX = 'machine:'

/** The tunnels of this replica come first. */
export function machinesAcross(own: MachineTunnels, peers: Pick<Peers, 'has' | 'dial' | 'link'>): MachineTunnels {
  const key = (machine: string): string => `${PREFIX}${machine}`
  const dial = (machine: string, service: string): Duplex | undefined =>
    peers.dial(key(machine), `${key(machine)}:${service}`)
  return {
    ...own,
    isConnected: (machine) => own.isConnected(machine) || peers.has(key(machine)),
    dialBuilder: (machine) => own.dialBuilder(machine) ?? dial(machine, 'builder'),
    dialApiPort: (machine) => own.dialApiPort(machine) ?? dial(machine, 'api-port'),
    apiServer: (machine) => own.apiServer(machine) ?? peers.link(key(machine), undefined),
  }
}

/** The agents of clusters and of machines that other replicas reach through this one. */
export function streamsForReplicas(
  hub: Pick<TunnelHub, 'dial' | 'listen'>,
  own: Pick<MachineTunnels, 'dialApi' | 'dialApiPort' | 'dialBuilder' | 'listen'>,
): Pick<TunnelHub, 'dial' | 'listen'> {
  return {
    dial(address) {
      if (!address.startsWith(PREFIX)) return hub.dial(address)
      const [machine = '', service] = address.slice(PREFIX.length).split(':')
      if (service === undefined) return own.dialApi(machine)
      if (service === 'builder') return own.dialBuilder(machine)
      return service === 'api-port' ? own.dialApiPort(machine) : undefined
    },
    listen(listener) {
      const unlisten = [hub.listen(listener), own.listen((machine, is) => listener(`${PREFIX}${machine}`, is))]
      return () => unlisten.forEach((end) => end())
    },
  }
}
