/**
 * The network that nodes of a cluster have on their machine: a bridge with addresses that nobody else uses. The machine has the
 * first of them, on which the API server listens for pods and for further nodes; it is for those only, whatever
 * others route to this machine.
 */
import { type Places, placesOf } from '#kubelet/containerd/places.ts'
import { bitsOf, type Cidr, nthAddress, parseCidr } from '#lib/cidr.ts'
import type { Clock } from '#lib/clock.ts'
import { createIpRoute, type IpRoute } from '#lib/iproute.ts'
import type { Logger } from '#lib/log.ts'
import { applyNft, replacingTable } from '#lib/nft.ts'
import { startRounds } from '#lib/rounds.ts'
import { ensureBridge } from '#network/bridge.ts'

import { rangesOf } from './asked-ranges.ts'
import { SIXTH } from './machine-flannel.ts'

export interface MachineNetworkOptions {
  readonly dataDir: string
  /** Of nodes. */
  readonly nodeCidr: string
  /** Of pods. */
  readonly podCidr: string
  readonly clock: Clock
  readonly log: Logger
}

export interface MachineNetwork {
  /** Of this machine, for pods and other nodes. */
  readonly address: string
  readonly places: Places
}

/** Links and rules that somebody took away are there again by then. */
const MEND_MS = 10_000

/** Resolves when addresses can be listened on. What it made stays when it ends, for those who go on; `removeLinks` takes it away. */
export async function openMachineNetwork(
  { dataDir, nodeCidr, podCidr, clock, log }: MachineNetworkOptions,
  closing: AsyncDisposableStack,
): Promise<MachineNetwork> {
  const places = placesOf(dataDir)
  const cidrs = rangesOf(nodeCidr).flatMap((text) => parseCidr(text) ?? [])
  const [first] = cidrs
  if (first === undefined) throw new Error(`"${nodeCidr}" is no range of addresses`)
  const ip = createIpRoute()
  const mend = (): Promise<unknown> => ensureNodeBridge(ip, places, cidrs)
  await mend()
  await applyNft(guard(places, nodeCidr, podCidr))
  const onError = (error: unknown): void => log.error(error, 'The network of nodes could not be mended')
  const mending = startRounds({ clock, periodMs: MEND_MS, onError }, async () => void (await mend()))
  closing.defer(() => mending.stop())
  return { address: nthAddress(first, 1), places }
}

async function ensureNodeBridge(ip: IpRoute, { nodeBridge }: Places, cidrs: readonly Cidr[]): Promise<void> {
  const addresses = cidrs.map(
    (cidr) => `${nthAddress(cidr, 1)}/${Math.min(cidr.prefixLength, bitsOf(cidr.family) - 1)}`,
  )
  await ensureBridge(ip, { name: nodeBridge, addresses })
}

/**
 * Linux answers for each of its addresses on every link: without the first two chains a neighbour of this machine could reach
 * what is meant for pods and nodes: the API server, and at the gateway of pods their name server. The last lets further nodes reach
 * the world as this machine. Pods themselves may be reached by who has a way to them.
 */
export function guard({ network, nodeBridge, overlay }: Places, nodeCidr: string, podCidr: string): string {
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
