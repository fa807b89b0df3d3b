/**
 * Writes the masquerading rules as one nftables table for each family: pods keep their addresses inside the network and
 * use the node's outside. Pure.
 */
import { type NftFamily, replacingTable } from '#lib/net/nft.ts'

export interface NftTable {
  readonly family: NftFamily
  readonly name: string
}

export interface MasqueradeSpec {
  readonly table: NftTable
  readonly family: 4 | 6
  /** The range of all pods. */
  readonly network: string
  /** The range of this node's pods. */
  readonly subnet: string
}

/** kube-proxy's masquerade mark. */
const PROXY_MARK = '0x4000'

export function masqueradeRules({ table, family, network, subnet }: MasqueradeSpec): string {
  const ip = family === 4 ? 'ip' : 'ip6'
  const multicast = family === 4 ? '224.0.0.0/4' : 'ff00::/8'
  return replacingTable(table.family, table.name, [
    '  chain postrtg { type nat hook postrouting priority 100;',
    // kube-proxy masquerades these; otherwise replies would take another path.
    `    meta mark & ${PROXY_MARK} == ${PROXY_MARK} return`,
    `    ${ip} saddr ${subnet} ${ip} daddr ${network} return`,
    `    ${ip} saddr ${network} ${ip} daddr ${subnet} return`,
    // Incoming traffic to this node's pods keeps its source address.
    `    ${ip} saddr != ${network} ${ip} daddr ${subnet} return`,
    `    ${ip} saddr ${network} ${ip} daddr != ${multicast} masquerade fully-random`,
    `    ${ip} saddr != ${network} ${ip} daddr ${network} masquerade fully-random`,
    '  }',
  ])
}
