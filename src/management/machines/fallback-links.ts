/**
 * Reaches the API server of a cluster through one of its control plane machines while the agent of the cluster is
 * disconnected, or does not answer.
 */
import { every, type Timer } from '#lib/clock.ts'

import { type Machine, Machines } from '../kinds/machine.ts'
import type { ClusterLink, ClusterLinks } from '../links/link.ts'
import type { MachineTunnels } from '../links/machine-tunnels.ts'
import type { TunnelHub } from '../links/tunnel-hub.ts'
import type { ManagementObjects } from '../objects.ts'

export interface FallbackOptions {
  readonly links: ClusterLinks
  readonly hub: Pick<TunnelHub, 'silentMs'>
  readonly machines: Pick<MachineTunnels, 'isConnected' | 'apiServer' | 'silentMs'>
  readonly objects: Pick<ManagementObjects, 'list' | 'clock'>
}

/** A cut connection ends after 25 s without pings. Users do not wait for that. */
const SILENT_MS = 3000
const PROBE_MS = 1000

/** Workers never get requests of users: only a control plane could answer them. */
export function withFallback(options: FallbackOptions): ClusterLinks & { close(): void } {
  const { links, hub, machines } = options
  const throughMachine = (cluster: string): ClusterLink | undefined => {
    const [first, ...others] = connectedPlanes(options).filter(({ spec }) => spec.cluster === cluster)
    if (first === undefined) return undefined
    const silence = ({ metadata }: Machine): number => machines.silentMs(metadata.name ?? '')
    const best = others.reduce((one, next) => (silence(next) < silence(one) ? next : one), first)
    const link = machines.apiServer(best.metadata.name ?? '')
    return link && { ...link, machine: best.spec.nodeName }
  }
  const timer = probeRegularly(options)
  return {
    get(cluster) {
      const link = links.get(cluster)
      if (link !== undefined && hub.silentMs(cluster) < SILENT_MS) return link
      return throughMachine(cluster) ?? link
    },
    close: () => timer.cancel(),
  }
}

/** Only where there is another way. */
function probeRegularly(options: FallbackOptions): Timer {
  const { hub, machines, objects } = options
  return every(objects.clock, PROBE_MS, () => {
    for (const { metadata, spec } of connectedPlanes(options)) {
      hub.silentMs(spec.cluster)
      machines.silentMs(metadata.name ?? '')
    }
  })
}

function connectedPlanes({ machines, objects }: FallbackOptions): readonly Machine[] {
  return objects
    .list(Machines)
    .filter(({ metadata, spec }) => spec.roles.includes('controlplane') && machines.isConnected(metadata.name ?? ''))
}
