/** How rules tell packets of this node's pods from all others. Pure. */

/** Conditions of rules. */
export interface LocalDetector {
  readonly nft: { readonly isLocal: string; readonly isNotLocal: string }
  readonly iptables: { readonly isLocal: readonly string[]; readonly isNotLocal: readonly string[] }
}

/** Pods have addresses of this block. */
export function localByCidr(cidr: string): LocalDetector {
  const ip = cidr.includes(':') ? 'ip6' : 'ip'
  return {
    nft: { isLocal: `${ip} saddr ${cidr}`, isNotLocal: `${ip} saddr != ${cidr}` },
    iptables: { isLocal: ['-s', cidr], isNotLocal: ['!', '-s', cidr] },
  }
}

/** Pods are behind this bridge. */
export function localByBridge(name: string): LocalDetector {
  return {
    nft: { isLocal: `iifname "${name}"`, isNotLocal: `iifname != "${name}"` },
    iptables: { isLocal: ['-i', name], isNotLocal: ['!', '-i', name] },
  }
}

/** Pods are behind interfaces whose names begin so. */
export function localByPrefix(prefix: string): LocalDetector {
  return {
    nft: { isLocal: `iifname "${prefix}*"`, isNotLocal: `iifname != "${prefix}*"` },
    iptables: { isLocal: ['-i', `${prefix}+`], isNotLocal: ['!', '-i', `${prefix}+`] },
  }
}
