/** Determines the addresses of a node: those of `--node-ip`, or those of the machine. */
import { lookup } from 'node:dns/promises'
import { networkInterfaces } from 'node:os'

import { canonicalIp } from '#meta/validation/addresses.ts'

export interface GivenAddresses {
  readonly addresses: readonly string[]
  /** Parts that are not addresses. */
  readonly ignored: readonly string[]
}

const isV6 = (address: string): boolean => address.includes(':')
const isUnspecified = (address: string): boolean => address === '0.0.0.0' || address === '::'

/** `--node-ip`: one address, or one per family. Throws upstream's errors. Pure. */
export function parseNodeIp(text: string): GivenAddresses {
  const parts = text === '' ? [] : text.split(',').map((part) => part.trim())
  const parsed = parts.map((part) => [part, canonicalIp(part)] as const)
  const addresses = parsed.flatMap(([, address]) => (address === undefined ? [] : [address]))
  const [first = '', second = ''] = addresses
  if (addresses.length > 2 || (addresses.length === 2 && isV6(first) === isV6(second))) {
    throw new Error('must contain either a single IP or a dual-stack pair of IPs')
  }
  if (addresses.length === 2 && addresses.some(isUnspecified)) {
    throw new Error("dual-stack node IP cannot include '0.0.0.0' or '::'")
  }
  return { addresses, ignored: parsed.flatMap(([part, address]) => (address === undefined ? [part] : [])) }
}

/**
 * The given addresses; otherwise the node name, if it is an address or resolves to a local one. Undefined: use the
 * interface with the default route.
 */
export async function nodeAddresses(name: string, given: readonly string[]): Promise<readonly string[] | undefined> {
  const [first] = given
  if (first !== undefined && !isUnspecified(first)) return given
  const own = canonicalIp(name)
  if (own !== undefined) return [own]
  const wantsV6 = first === '::'
  const all = await lookup(name, { all: true }).catch(() => [])
  const here = Object.values(networkInterfaces()).flatMap((addresses) => addresses ?? [])
  const usable = all
    .map(({ address }) => address)
    .filter((address) => here.some((one) => one.address === address && !one.internal))
  const best = usable.find((address) => isV6(address) === wantsV6) ?? usable[0]
  return best === undefined ? undefined : [best]
}
