/** Implements the pod network on Linux with flannel's links, routes, neighbours and nftables rules. */
import type { IpRoute } from '#lib/net/iproute.ts'
import type { Random } from '#lib/random.ts'

import { type DaemonOptions, type FamilyNetwork, type Flannel, type MachineNetwork, startDaemon } from './daemon.ts'
import { type ExternalInterface, vxlanMtu } from './link.ts'
import type { NftTable } from './masquerade.ts'
import { ensureMasquerade, ensurePaths, ensureVxlan } from './node-links.ts'

export interface FlannelOptions extends DaemonOptions {
  readonly ip: IpRoute
  readonly external: ExternalInterface
  /** Default: flannel's own, `flannel.1` and `flannel-v6.1`. */
  readonly overlay?: (family: 4 | 6) => string
  /** Default: flannel's own, `flannel-ipv4` and `flannel-ipv6`. */
  readonly table?: (family: 4 | 6) => NftTable
}

/** Stops with `closing`. */
export function startFlannel(options: FlannelOptions, closing: AsyncDisposableStack): Flannel {
  return startDaemon(options, linuxNetwork(options), closing)
}

function linuxNetwork(options: FlannelOptions): MachineNetwork {
  const { conf, ip, external, node, random, table = flannelTable } = options
  const { backend } = conf
  const vni = backend.type === 'vxlan' ? backend.vni : 0
  const overlay = options.overlay ?? ((family) => (family === 4 ? `flannel.${vni}` : `flannel-v6.${vni}`))
  /** The ranges of the current rules. */
  let ruled = ''
  return {
    async open(families, known) {
      if (backend.type !== 'vxlan') return families
      return Promise.all(
        families.map(async ({ family, publicIp, first }) => {
          const spec = { name: overlay(family), family, backend, external, local: publicIp, address: first }
          const mac = await ensureVxlan(ip, { ...spec, mac: known(family) ?? randomMac(random) })
          return { family, publicIp, data: { vni: backend.vni, mac } }
        }),
      )
    },
    async masquerade(families) {
      const next = JSON.stringify(families)
      for (const { family, network, subnet } of families)
        await ensureMasquerade({ table: table(family), family, network, subnet }, next !== ruled)
      ruled = next
    },
    reach: (family, leases) => ensurePaths(ip, { node, backend, external, overlay: overlay(family) }, family, leases),
    mtu: (families) => Math.min(...families.map(({ family }: FamilyNetwork) => mtuOf(options, family))),
  }
}

function mtuOf({ conf, external }: FlannelOptions, family: 4 | 6): number {
  const { backend } = conf
  return backend.type === 'vxlan' ? vxlanMtu({ family, backend, external }) : (backend.mtu ?? external.mtu)
}

export const flannelTable = (family: 4 | 6): NftTable => ({
  family: family === 4 ? 'ip' : 'ip6',
  name: `flannel-ipv${family}`,
})

/** A locally administered unicast address. */
function randomMac(random: Random): string {
  const bytes = random.bytes(6)
  bytes[0] = ((bytes[0] ?? 0) & 0xfc) | 0x02
  return Array.from(bytes, (byte) => byte.toString(16).padStart(2, '0')).join(':')
}
