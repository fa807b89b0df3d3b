/** Writes rule conditions that detect traffic of local pods. Pure. */

/** Conditions for both backends. */
export interface LocalDetector {
  readonly nft: { readonly isLocal: string; readonly isNotLocal: string }
  readonly iptables: { readonly isLocal: readonly string[]; readonly isNotLocal: readonly string[] }
}

/** By pod CIDR. */
export function localByCidr(cidr: string): LocalDetector {
  const ip = cidr.includes(':') ? 'ip6' : 'ip'
  return {
    nft: { isLocal: `${ip} saddr ${cidr}`, isNotLocal: `${ip} saddr != ${cidr}` },
    iptables: { isLocal: ['-s', cidr], isNotLocal: ['!', '-s', cidr] },
  }
}

/** By bridge. */
export function localByBridge(name: string): LocalDetector {
  return {
    nft: { isLocal: `iifname "${name}"`, isNotLocal: `iifname != "${name}"` },
    iptables: { isLocal: ['-i', name], isNotLocal: ['!', '-i', name] },
  }
}

/** By interface name prefix. */
export function localByPrefix(prefix: string): LocalDetector {
  return {
    nft: { isLocal: `iifname "${prefix}*"`, isNotLocal: `iifname != "${prefix}*"` },
    iptables: { isLocal: ['-i', `${prefix}+`], isNotLocal: ['!', '-i', `${prefix}+`] },
  }
}
