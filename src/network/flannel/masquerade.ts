/**
 * Pods reach each other with their own addresses and the world with their node's: flannel's rules, as one table of nftables in
 * each family. Pure.
 */
import { type NftFamily, replacingTable } from '#lib/nft.ts'

export interface NftTable {
  readonly family: NftFamily
  readonly name: string
}

export interface MasqueradeWish {
  readonly table: NftTable
  readonly family: 4 | 6
  /** Addresses of all pods. */
  readonly network: string
  /** Of this node's. */
  readonly subnet: string
}

/** Chosen by kube-proxy for what it masquerades itself. */
const PROXY_MARK = '0x4000'

export function masqueradeRules({ table, family, network, subnet }: MasqueradeWish): string {
  const ip = family === 4 ? 'ip' : 'ip6'
  const multicast = family === 4 ? '224.0.0.0/4' : 'ff00::/8'
  return replacingTable(table.family, table.name, [
    '  chain postrtg { type nat hook postrouting priority 100;',
    // Else its answer would go another way than it came.
    `    meta mark & ${PROXY_MARK} == ${PROXY_MARK} return`,
    `    ${ip} saddr ${subnet} ${ip} daddr ${network} return`,
    `    ${ip} saddr ${network} ${ip} daddr ${subnet} return`,
    // What comes from outside to a pod of this node keeps its address.
    `    ${ip} saddr != ${network} ${ip} daddr ${subnet} return`,
    `    ${ip} saddr ${network} ${ip} daddr != ${multicast} masquerade fully-random`,
    `    ${ip} saddr != ${network} ${ip} daddr ${network} masquerade fully-random`,
    '  }',
  ])
}
