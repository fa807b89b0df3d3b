/**
 * Creates the node network on this machine: a bridge with a private range, whose first address is the machine's. On
 * that address the API server accepts only pods and extra nodes, even if other hosts route packets to it.
 */
import { type ContainerdPaths, containerdPaths } from '#containerd/paths.ts'
import type { Clock } from '#lib/clock.ts'
import type { Logger } from '#lib/log/log.ts'
import { bitsOf, type Cidr, nthAddress, parseCidr } from '#lib/net/cidr.ts'
import { createIpRoute, type IpRoute } from '#lib/net/iproute.ts'
import { applyNft, replacingTable } from '#lib/net/nft.ts'
import { runPeriodically } from '#lib/periodic.ts'
import { ensureBridge } from '#network/bridge.ts'

import { rangesOf } from '../address-ranges.ts'
import { SIXTH } from './machine-flannel.ts'

export interface MachineNetworkOptions {
  readonly dataDir: string
  /** The range of nodes. */
  readonly nodeCidr: string
  /** The range of pods. */
  readonly podCidr: string
  readonly clock: Clock
  readonly log: Logger
}

export interface MachineNetwork {
  /** The machine's address for pods and other nodes. */
  readonly address: string
  readonly places: ContainerdPaths
}

/** The period of repairs. */
const MEND_MS = 10_000

/**
 * Resolves when the addresses can be used. Keeps the network at the end, for running containers; `removeLinks` removes
 * it.
 */
export async function openMachineNetwork(
  { dataDir, nodeCidr, podCidr, clock, log }: MachineNetworkOptions,
  closing: AsyncDisposableStack,
): Promise<MachineNetwork> {
  const places = containerdPaths(dataDir)
  const cidrs = rangesOf(nodeCidr).flatMap((text) => parseCidr(text) ?? [])
  const [first] = cidrs
  if (first === undefined) throw new Error(`"${nodeCidr}" is not a CIDR`)
  const ip = createIpRoute()
  const mend = (): Promise<unknown> => ensureNodeBridge(ip, places, cidrs)
  await mend()
  await applyNft(guard(places, nodeCidr, podCidr))
  const onError = (error: unknown): void => log.error(error, 'Failed to repair the node network')
  const mending = runPeriodically({ clock, periodMs: MEND_MS, onError }, async () => void (await mend()))
  closing.defer(() => mending.stop())
  return { address: nthAddress(first, 1), places }
}

async function ensureNodeBridge(ip: IpRoute, { nodeBridge }: ContainerdPaths, cidrs: readonly Cidr[]): Promise<void> {
  const addresses = cidrs.map(
    (cidr) => `${nthAddress(cidr, 1)}/${Math.min(cidr.prefixLength, bitsOf(cidr.family) - 1)}`,
  )
  await ensureBridge(ip, { name: nodeBridge, addresses })
}

/**
 * Linux answers for all its addresses on every link, so neighbours of this machine could reach the API server and the
 * DNS server at the pod gateway: two chains block that. The last chain masquerades extra nodes. Pods themselves stay
 * reachable.
 */
export function guard({ network, nodeBridge, overlay }: ContainerdPaths, nodeCidr: string, podCidr: string): string {
  const own = `{ ${[network, nodeBridge, overlay, `${overlay}${SIXTH}`].map((name) => `"${name}"`).join(', ')} }`
  const fromOutside = (ranges: string): string[] =>
    rangesOf(ranges).map(
      (range) => `    iifname != "lo" iifname != ${own} ${familyOf(range)} daddr ${range} ct state new drop`,
    )
  return replacingTable('inet', `${network}-nodes`, [
    '  chain input { type filter hook input priority -10;',
    ...fromOutside(nodeCidr),
    ...fromOutside(podCidr),
    '  }',
    '  chain forward { type filter hook forward priority -10;',
    ...fromOutside(nodeCidr),
    '  }',
    '  chain postrouting { type nat hook postrouting priority 100;',
    ...rangesOf(nodeCidr).map((range) => {
      const ip = familyOf(range)
      return `    ${ip} saddr ${range} ${ip} daddr != ${range} oifname != ${own} masquerade`
    }),
    '  }',
  ])
}

const familyOf = (range: string): string => (range.includes(':') ? 'ip6' : 'ip')
