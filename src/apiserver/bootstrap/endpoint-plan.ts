/**
 * Computes the Endpoints and the EndpointSlice of the Service `kubernetes`: every server with a lease, or with
 * `master-count` a fixed number of servers. Pure.
 */
import type { EndpointPort, EndpointSubset } from '#apis/core/v1.ts'
import type { EndpointSlice } from '#apis/discovery/v1.ts'

/** This server and its ports. */
export interface OwnEndpoint {
  readonly ip: string
  readonly ports: readonly EndpointPort[]
}

type Subsets = readonly EndpointSubset[]

/** `ips` are the addresses of all servers with a lease; `own` is absent for a server that leaves. */
export function planLeased(subsets: Subsets, ips: readonly string[], own?: OwnEndpoint): EndpointSubset[] {
  if (ips.length === 0) return []
  const only = onlySubset(subsets)
  // An unexpected form is left to the remaining servers.
  if (own === undefined && only === undefined) return [...subsets]
  // All servers must have the same ports; a later server keeps the existing ones. A single server sets its own.
  const isAlone = ips.length === 1 && ips[0] === own?.ip
  const ports = own !== undefined && (only === undefined || isAlone) ? [...own.ports] : (only?.ports ?? [])
  const there = (only?.addresses ?? []).map(({ ip }) => ip)
  if (only !== undefined && sameMembers(there, ips)) return [{ ...only, ports }]
  return [{ addresses: [...ips].sort(byText).map((ip) => ({ ip })), ports }]
}

/** `count` is `--apiserver-count`. */
export function planCounted(subsets: Subsets, own: OwnEndpoint, count: number): EndpointSubset[] {
  const only = onlySubset(subsets)
  if (only === undefined) return [{ addresses: [{ ip: own.ip }], ports: [...own.ports] }]
  const there = only.addresses ?? []
  const isThere = there.some(({ ip }) => ip === own.ip)
  if (isThere && there.length <= count) return [only]
  const all = isThere ? [...there] : [...there, { ip: own.ip }]
  const sorted = all.sort((a, b) => byText(a.ip, b.ip))
  // Removes the servers after this one, wrapping around at the end.
  while (sorted.length > count && sorted.length > 1) {
    const next = (sorted.findIndex(({ ip }) => ip === own.ip) + 1) % sorted.length
    sorted.splice(next, 1)
  }
  return [{ ...only, addresses: sorted }]
}

/** Without this server; an empty subset is removed. */
export function planWithout(subsets: Subsets, own: string): EndpointSubset[] {
  const [first, ...others] = subsets
  if (first === undefined) return []
  const addresses = (first.addresses ?? []).filter(({ ip }) => ip !== own)
  return addresses.length === 0 ? others : [{ ...first, addresses }, ...others]
}

/** The first subset as a slice: IPv6 if all its addresses are, else IPv4 with those that are. */
export function planSlice(subsets: Subsets): Pick<EndpointSlice, 'addressType' | 'endpoints' | 'ports'> {
  const { addresses = [], ports = [] } = subsets[0] ?? {}
  const isV6 = (ip: string): boolean => ip.includes(':')
  const addressType = addresses.length > 0 && addresses.every(({ ip }) => isV6(ip)) ? 'IPv6' : 'IPv4'
  const fitting = addresses.filter(({ ip }) => isV6(ip) === (addressType === 'IPv6'))
  return {
    addressType,
    endpoints: fitting.map(({ ip }) => ({ addresses: [ip], conditions: { ready: true } })),
    ports: ports.map(({ name, port, protocol }) => ({
      ...(name !== undefined && { name }),
      port,
      ...(protocol !== undefined && { protocol }),
    })),
  }
}

/** Anything but one subset was not written by a server, and is replaced. */
function onlySubset(subsets: Subsets): EndpointSubset | undefined {
  return subsets.length === 1 ? subsets[0] : undefined
}

function sameMembers(a: readonly string[], b: readonly string[]): boolean {
  const members = new Set(b)
  return a.length === b.length && new Set(a).size === a.length && a.every((one) => members.has(one))
}

function byText(a: string, b: string): number {
  return a < b ? -1 : a > b ? 1 : 0
}
