/**
 * Services that are reached by cluster IP alone have no chain of their own. Those with the same number of endpoints share one, that
 * draws a number and looks the endpoint up by it and by what the packet was sent to. So an endpoint is an element of one map,
 * and a change of it touches neither chains nor rules, which are what makes nft slow when there are many.
 */
import type { IpFamily } from '#model/services.ts'

import type { Protocol } from '../service-port.ts'

/** From what a packet is sent to, and a number, to an endpoint. One for each protocol, because rules must name it. */
export const ENDPOINT_MAPS: readonly { readonly protocol: Protocol; readonly name: string }[] = [
  { protocol: 'tcp', name: 'endpoints-tcp' },
  { protocol: 'udp', name: 'endpoints-udp' },
  { protocol: 'sctp', name: 'endpoints-sctp' },
]

/** Also a Service's chain by its name, which has a slash. */
export function sharedChain(endpoints: number): string {
  return `any-of/${endpoints}`
}

/** The rules of such a chain; none for the name of another. */
export function sharedRules(name: string, family: IpFamily): readonly string[] {
  const [, count] = /^any-of\/(\d+)$/.exec(name) ?? []
  if (count === undefined) return []
  const ip = family === 'IPv4' ? 'ip' : 'ip6'
  return ENDPOINT_MAPS.map(
    ({ protocol, name: map }) =>
      `meta l4proto ${protocol} dnat ${ip} to ${ip} daddr . ${protocol} dport . numgen random mod ${count} map @${map}`,
  )
}
