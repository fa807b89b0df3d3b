/** Implements flannel on Windows, with a network of the Host Compute Network service and its policies. */
import { type Clock, sleep } from '#lib/clock.ts'
import type { HcnNetwork, HostComputeNetworks } from '#lib/hns/hcn.ts'

import { type DaemonOptions, type FamilyNetwork, type Flannel, type MachineNetwork, startDaemon } from '../daemon.ts'
import type { WindowsNetConf } from './net-conf.ts'
import {
  hasHostRoute,
  isSameNetwork,
  managementIp,
  type NetworkSpec,
  planRemoteSubnets,
  routerMac,
  wantedNetwork,
} from './remote-subnets.ts'

export interface WindowsFlannelOptions extends DaemonOptions {
  readonly conf: WindowsNetConf
  readonly hcn: HostComputeNetworks
  /** The adapter to other nodes; its name changes when a switch is created. */
  readonly adapter: () => Promise<{ readonly name: string; readonly mtu: number }>
  /** Whether an adapter has this address: it disappears briefly while a switch is created. */
  readonly hasAddress: (address: string) => Promise<boolean>
}

type WindowsNetworkOptions = Pick<WindowsFlannelOptions, 'conf' | 'hcn' | 'adapter' | 'hasAddress' | 'node' | 'log'> & {
  readonly clock: Clock
}

/** The overhead of VXLAN. */
const OVERHEAD = 50

/** Timeouts for the management address, and for the machine's own address. */
const WAITS = { management: { everyMs: 500, forMs: 5000 }, address: { everyMs: 5000, forMs: 45_000 } }

/** Stops with `closing`. */
export function startWindowsFlannel(options: WindowsFlannelOptions, closing: AsyncDisposableStack): Flannel {
  const { clock } = options.client
  return startDaemon(options, windowsNetwork({ ...options, clock }), closing)
}

export function windowsNetwork(options: WindowsNetworkOptions): MachineNetwork {
  const { hcn, conf, node, log, clock, adapter } = options
  let mtu = 0
  const find = async (): Promise<HcnNetwork | undefined> => (await hcn.list()).find(({ Name }) => Name === conf.name)
  const ensure = async (spec: NetworkSpec): Promise<HcnNetwork> => {
    const found = await find()
    if (found !== undefined && isSameNetwork(found, spec)) return found
    if (found !== undefined) await hcn.remove(found.ID)
    log.info('Creating the pod network', { name: spec.name, subnet: spec.subnet })
    await hcn.create(wantedNetwork(spec))
    return poll(clock, WAITS.management, 'The network has no address', async () => {
      const made = await find()
      return made !== undefined && managementIp(made) !== undefined ? made : undefined
    })
  }
  return {
    async open([own]) {
      if (own === undefined) return []
      const { name, mtu: outer } = await adapter()
      mtu = (conf.backend.mtu ?? outer - OVERHEAD) || outer
      const { vni } = conf.backend
      const network = await ensure({ name: conf.name, vni, subnet: own.subnet, gateway: gatewayOf(own), adapter: name })
      const address = managementIp(network) ?? own.publicIp
      await poll(
        clock,
        WAITS.address,
        `No adapter has ${address}`,
        async () => (await options.hasAddress(address)) || undefined,
      )
      if (!hasHostRoute(network)) await hcn.add(network.ID, [{ Type: 'HostRoute', Settings: {} }])
      const mac = routerMac(network)
      if (mac === undefined) throw new Error(`The network ${conf.name} has no router MAC`)
      return [{ family: 4, publicIp: own.publicIp, data: { vni, mac } }]
    },
    // CNI policies masquerade for each pod.
    masquerade: () => Promise.resolve(),
    async reach(family, leases) {
      const network = family === 4 ? await find() : undefined
      if (network === undefined) return false
      const { take, add } = planRemoteSubnets(node, leases, network)
      if (take.length > 0) await hcn.take(network.ID, take)
      if (add.length > 0) await hcn.add(network.ID, add)
      return take.length + add.length > 0
    },
    mtu: () => mtu,
  }
}

/** The second address of the node's range. */
function gatewayOf({ first }: FamilyNetwork): string {
  return first.replace(/\d+$/, (last) => String(Number(last) + 1))
}

interface Wait {
  readonly everyMs: number
  readonly forMs: number
}

/** Polls until there is a result. */
async function poll<T>(
  clock: Clock,
  { everyMs, forMs }: Wait,
  what: string,
  ask: () => Promise<T | undefined>,
): Promise<T> {
  for (let waitedMs = 0; ; waitedMs += everyMs) {
    const found = await ask()
    if (found !== undefined) return found
    if (waitedMs >= forMs) throw new Error(`${what} within ${forMs / 1000} s`)
    await sleep(clock, everyMs)
  }
}
