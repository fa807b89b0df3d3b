/** flannel on Windows: a network of the Host Compute Network service, and policies of it. */
import { type Clock, sleep } from '#lib/clock.ts'
import type { HcnNetwork, HostComputeNetworks } from '#lib/hns/hcn.ts'

import { type DaemonOptions, type Family, type Flannel, type Ground, startDaemon } from '../daemon.ts'
import type { WindowsNetConf } from './net-conf.ts'
import {
  hasHostRoute,
  isSameNetwork,
  managementIp,
  type NetworkWish,
  planRemoteSubnets,
  routerMac,
  wantedNetwork,
} from './remote-subnets.ts'

export interface WindowsFlannelOptions extends DaemonOptions {
  readonly conf: WindowsNetConf
  readonly hcn: HostComputeNetworks
  /** To other nodes; by its name of now, which a switch may change. */
  readonly adapter: () => Promise<{ readonly name: string; readonly mtu: number }>
  /** Whether an adapter of the machine has this address: it goes and comes while a switch is laid. */
  readonly hasAddress: (address: string) => Promise<boolean>
}

type GroundOptions = Pick<WindowsFlannelOptions, 'conf' | 'hcn' | 'adapter' | 'hasAddress' | 'node' | 'log'> & {
  readonly clock: Clock
}

/** What VXLAN puts around a packet. */
const OVERHEAD = 50

/** For the network to know its address, and for the machine to have it back. */
const WAITS = { management: { everyMs: 500, forMs: 5000 }, address: { everyMs: 5000, forMs: 45_000 } }

/** Ends with `closing`. */
export function startWindowsFlannel(options: WindowsFlannelOptions, closing: AsyncDisposableStack): Flannel {
  const { clock } = options.client
  return startDaemon(options, windowsGround({ ...options, clock }), closing)
}

export function windowsGround(options: GroundOptions): Ground {
  const { hcn, conf, node, log, clock, adapter } = options
  let mtu = 0
  const find = async (): Promise<HcnNetwork | undefined> => (await hcn.list()).find(({ Name }) => Name === conf.name)
  const ensure = async (wish: NetworkWish): Promise<HcnNetwork> => {
    const found = await find()
    if (found !== undefined && isSameNetwork(found, wish)) return found
    if (found !== undefined) await hcn.remove(found.ID)
    log.info('Making the network of pods', { name: wish.name, subnet: wish.subnet })
    await hcn.create(wantedNetwork(wish))
    return asked(clock, WAITS.management, 'The network has no address', async () => {
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
      await asked(
        clock,
        WAITS.address,
        `No adapter has ${address}`,
        async () => (await options.hasAddress(address)) || undefined,
      )
      if (!hasHostRoute(network)) await hcn.add(network.ID, [{ Type: 'HostRoute', Settings: {} }])
      const mac = routerMac(network)
      if (mac === undefined) throw new Error(`The network ${conf.name} does not say its router's MAC`)
      return [{ family: 4, publicIp: own.publicIp, data: { vni, mac } }]
    },
    // Of what leaves the network, CNI's policies take care for each pod.
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

/** The first address of a node's pods after that of the range itself. */
function gatewayOf({ first }: Family): string {
  return first.replace(/\d+$/, (last) => String(Number(last) + 1))
}

interface Wait {
  readonly everyMs: number
  readonly forMs: number
}

/** Asks until there is an answer. */
async function asked<T>(
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
