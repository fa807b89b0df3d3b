/**
 * A load balancer for simulated nodes: each Service gets its own address, as from a cloud, but nothing listens there.
 */
import { type LoadBalancerStatus, type Service, Services } from '#apis/core/v1.ts'
import type { BalancerRequest, ClusterView, LoadBalancer } from '#cloud/provider.ts'
import { type Cidr, nthAddress, parseCidr, parseIp } from '#lib/net/cidr.ts'

/** The networks for benchmarks (RFC 2544 and RFC 5180): no real network has such addresses. */
const RANGES: Readonly<Record<string, Cidr>> = {
  IPv4: parseCidr('198.18.0.0/15') as Cidr,
  IPv6: parseCidr('2001:2::/48') as Cidr,
}

export function createSimulatedBalancer(): LoadBalancer {
  /** By uid. The status in the cache may be older. */
  const given = new Map<string, readonly string[]>()
  return {
    find: ({ service }) => Promise.resolve(service.status?.loadBalancer),
    ensure({ service, view }) {
      const { uid = '' } = service.metadata
      const addresses = given.get(uid) ?? chooseAddresses(service, takenBy(view, service, given))
      given.set(uid, addresses)
      return Promise.resolve(statusOf(addresses))
    },
    update: () => Promise.resolve(),
    remove({ service }: BalancerRequest) {
      given.delete(service.metadata.uid ?? '')
      return Promise.resolve()
    },
  }
}

/** The addresses of all other Services. */
function takenBy(
  view: ClusterView,
  service: Service,
  given: ReadonlyMap<string, readonly string[]>,
): ReadonlySet<string> {
  const taken = new Set([...given.values()].flat())
  for (const other of view.list(Services)) {
    if (other.metadata.uid !== service.metadata.uid) for (const address of addressesOf(other)) taken.add(address)
  }
  return taken
}

/** One for each family of the Service. It keeps an address of an earlier process and gets `loadBalancerIP` if that is free. */
function chooseAddresses(service: Service, taken: ReadonlySet<string>): string[] {
  const { ipFamilies = ['IPv4'], loadBalancerIP = '' } = service.spec
  const wanted = [loadBalancerIP, ...addressesOf(service)].filter((address) => address !== '' && !taken.has(address))
  return ipFamilies.flatMap((family) => {
    const range = RANGES[family]
    if (range === undefined) return []
    return wanted.find((address) => isOfFamily(range, address)) ?? firstFree(range, taken)
  })
}

/** True for an address of the family of `range`; a requested one may be outside of it. */
function isOfFamily(range: Cidr, address: string): boolean {
  return parseIp(address)?.family === range.family
}

function firstFree(range: Cidr, taken: ReadonlySet<string>): string {
  for (let n = 1; ; n++) {
    const address = nthAddress(range, n)
    if (!taken.has(address)) return address
  }
}

function addressesOf({ status }: Service): string[] {
  return (status?.loadBalancer?.ingress ?? []).map(({ ip = '' }) => ip)
}

function statusOf(addresses: readonly string[]): LoadBalancerStatus {
  return { ingress: addresses.map((ip) => ({ ip, ipMode: 'VIP' })) }
}
