/**
 * Shared chains for Services that have only a cluster IP. Services with the same number of endpoints share a chain. The
 * chain picks a random number and looks up the endpoint by destination and number. So each endpoint is a map element. A
 * changed endpoint needs no new chains or rules, which are slow in nft.
 */
import type { IpFamily } from '#model/services.ts'

import type { Protocol } from '../service-port.ts'

/** Maps destination and number to an endpoint. One for each protocol, because rules must name it. */
export const ENDPOINT_MAPS: readonly { readonly protocol: Protocol; readonly name: string }[] = [
  { protocol: 'tcp', name: 'endpoints-tcp' },
  { protocol: 'udp', name: 'endpoints-udp' },
  { protocol: 'sctp', name: 'endpoints-sctp' },
]

/** Cannot collide with a Service's chain, whose name contains a slash. */
export function sharedChain(endpoints: number): string {
  return `any-of/${endpoints}`
}

/** The rules of a shared chain; empty for other names. */
export function sharedRules(name: string, family: IpFamily): readonly string[] {
  const [, count] = /^any-of\/(\d+)$/.exec(name) ?? []
  if (count === undefined) return []
  const ip = family === 'IPv4' ? 'ip' : 'ip6'
  return ENDPOINT_MAPS.map(
    ({ protocol, name: map }) =>
      `meta l4proto ${protocol} dnat ${ip} to ${ip} daddr . ${protocol} dport . numgen random mod ${count} map @${map}`,
  )
}
