/**
 * The load balancer of the provider `local`: a Service is reachable at the nodes' addresses on its own ports, through
 * the rules of kube-proxy. The oldest Service gets a port; others wait for it.
 */
import { type LoadBalancerIngress, type LoadBalancerStatus, type Node, type Service, Services } from '#apis/core/v1.ts'
import { EndpointSlices } from '#apis/discovery/v1.ts'
import { isBeingDeleted } from '#meta/object.ts'

import { type BalancerRequest, type ClusterView, type LoadBalancer, Refused } from './provider.ts'
import { wantsBalancer } from './service-loop.ts'

export interface NodeBalancerOptions {
  /** Ports of node components, which no Service may take. */
  readonly reserved: () => readonly number[]
}

export function createNodeBalancer({ reserved }: NodeBalancerOptions): LoadBalancer {
  return {
    isFree: true,
    find: ({ service }) => Promise.resolve(service.status?.loadBalancer),
    async ensure({ service, nodes, view }) {
      refuseReserved(service, reserved())
      refuseTaken(service, view)
      return statusFor(service, nodes, view)
    },
    // Without addresses in the status no traffic is routed.
    remove: () => Promise.resolve(),
  }
}

function refuseReserved({ spec }: Service, reserved: readonly number[]): void {
  const port = spec.ports?.find(({ port: one }) => reserved.includes(one))?.port
  if (port !== undefined) throw new Refused(`port ${port} is reserved for node components`)
}

/** Older Services keep their ports while they exist. */
function refuseTaken(service: Service, view: ClusterView): void {
  const wanted = portsOf(service)
  for (const other of view.list(Services)) {
    if (!isBefore(other, service) || !wantsBalancer(other) || isBeingDeleted(other)) continue
    const taken = portsOf(other).find((port) => wanted.includes(port))
    const { namespace, name } = other.metadata
    if (taken !== undefined) throw new Refused(`port ${taken} is already used by service ${namespace}/${name}`)
  }
}

const portsOf = ({ spec }: Service): string[] =>
  (spec.ports ?? []).map(({ port, protocol = 'TCP' }) => `${port}/${protocol}`)

function isBefore(one: Service, other: Service): boolean {
  return one.metadata.uid !== other.metadata.uid && ageOf(one) < ageOf(other)
}

const ageOf = ({ metadata: { creationTimestamp = '', uid = '' } }: Service): string => `${creationTimestamp} ${uid}`

/** Pure. With externalTrafficPolicy Local, only nodes with an endpoint. */
export function statusFor(service: Service, nodes: readonly Node[], view: BalancerRequest['view']): LoadBalancerStatus {
  const isLocal = service.spec.externalTrafficPolicy === 'Local'
  const serving = isLocal ? nodesWithEndpoints(service, view) : undefined
  const behind = nodes.filter(({ metadata: { name = '' } }) => serving?.has(name) ?? true)
  const { ipFamilies = ['IPv4'] } = service.spec
  const addresses = behind.flatMap(addressesOf).filter((ip) => ipFamilies.includes(ip.includes(':') ? 'IPv6' : 'IPv4'))
  const ingress = [...new Set(addresses)].sort().map((ip): LoadBalancerIngress => ({ ip, ipMode: 'VIP' }))
  return ingress.length === 0 ? {} : { ingress }
}

/** External addresses, or internal ones if there are none. */
function addressesOf({ status }: Node): string[] {
  const of = (type: string): string[] =>
    (status?.addresses ?? []).filter((one) => one.type === type).map(({ address }) => address)
  const external = of('ExternalIP')
  return external.length > 0 ? external : of('InternalIP')
}

function nodesWithEndpoints({ metadata: { namespace, name } }: Service, view: ClusterView): Set<string> {
  const found = new Set<string>()
  for (const { metadata, endpoints } of view.list(EndpointSlices)) {
    if (metadata.namespace !== namespace || metadata.labels?.['kubernetes.io/service-name'] !== name) continue
    for (const { conditions, nodeName } of endpoints ?? [])
      if (nodeName !== undefined && (conditions?.ready ?? true)) found.add(nodeName)
  }
  return found
}
