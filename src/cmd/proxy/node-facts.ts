/** Collects the facts about the node and its pods that the rules of both proxy modes need. */
import { networkInterfaces } from 'node:os'

import type { Node } from '#apis/core/v1.ts'
import { contains, parseCidr, parseIp } from '#lib/net/cidr.ts'
import type { IpFamily } from '#model/services.ts'
import type { ProxyConfiguration } from '#proxy/configuration.ts'
import { type LocalDetector, localByBridge, localByCidr, localByPrefix } from '#proxy/local-detector.ts'

export const FAMILIES: readonly IpFamily[] = ['IPv4', 'IPv6']

/** How to recognize packets of this node's pods; undefined if that is not possible. */
export function detectorOf(
  configuration: ProxyConfiguration,
  family: IpFamily,
  node: Node | undefined,
): LocalDetector | undefined {
  const { detectLocalMode, detectLocal, clusterCIDR } = configuration
  const ofFamily = (cidrs: readonly string[]): string | undefined =>
    cidrs.find((cidr) => cidr !== '' && cidr.includes(':') === (family === 'IPv6'))
  const byCidr = (cidr: string | undefined): LocalDetector | undefined =>
    cidr === undefined ? undefined : localByCidr(cidr)
  switch (detectLocalMode) {
    case 'BridgeInterface':
      return localByBridge(detectLocal.bridgeInterface)
    case 'InterfaceNamePrefix':
      return localByPrefix(detectLocal.interfaceNamePrefix)
    case 'NodeCIDR':
      return byCidr(ofFamily(node?.spec.podCIDRs ?? []))
    default:
      return byCidr(ofFamily(clusterCIDR.split(',')))
  }
}

/** The primary address comes first. */
export function nodeIpsOf(node: Node | undefined, family: IpFamily): string[] {
  const all = node?.status.addresses ?? []
  const inOrder = ['InternalIP', 'ExternalIP'].flatMap((type) => all.filter((one) => one.type === type))
  return inOrder.map(({ address }) => address).filter((one) => one.includes(':') === (family === 'IPv6'))
}

/** The addresses of node ports; undefined: all addresses of the node. */
export function nodePortIpsOf(
  wanted: readonly string[],
  family: IpFamily,
  { node, loopback = false }: { readonly node: Node | undefined; readonly loopback?: boolean },
): string[] | undefined {
  if (wanted[0] === 'primary') {
    const [primary] = nodeIpsOf(node, family)
    return primary === undefined ? undefined : [primary]
  }
  const ranges = wanted.flatMap((text) => parseCidr(text, { sloppy: true }) ?? [])
  const own = ranges.filter((range) => (range.family === 6) === (family === 'IPv6'))
  // Without an address of the family, all its addresses match, like upstream.
  if (own.length === 0 || own.some(({ prefixLength }) => prefixLength === 0)) return undefined
  const here = Object.values(networkInterfaces()).flatMap((all) => all ?? [])
  return here.flatMap(({ address, internal }) => {
    const ip = parseIp(address)
    return (loopback || !internal) && ip !== undefined && own.some((range) => contains(range, ip)) ? [address] : []
  })
}
