/**
 * The routing model: which endpoints a node sends packets to, for traffic that may go anywhere (policy Cluster) and for traffic
 * that must stay on the node (policy Local). Renderings for nftables and iptables read nothing else. Pure.
 */
import type { Service } from '#apis/core/v1.ts'
import type { EndpointSlice } from '#apis/discovery/v1.ts'

import { type Endpoint, endpointsOf, type Vantage } from './endpoints.ts'
import { isExternal, type ServicePort, servicePortsOf } from './service-port.ts'

export interface Route {
  readonly port: ServicePort
  /** For traffic that may go to any node. */
  readonly cluster: readonly Endpoint[]
  /** For traffic that must stay on this node; empty also where no policy asks for it. */
  readonly local: readonly Endpoint[]
  /** Whether there is any in the whole cluster: who has none anywhere is refused, who has none here is not answered. */
  readonly hasEndpoints: boolean
  /** How many there are in all, whatever state they are in. */
  readonly endpoints: number
  /** Of UDP: all that flows may stay with, whatever policies say of new ones. */
  readonly serving: readonly Endpoint[]
  /** Of Services with a port for health checks: addresses of those on this node that are ready. */
  readonly readyHere: readonly string[]
}

/** One for each port of the Service. */
export function routesOf(service: Service, slices: readonly EndpointSlice[], vantage: Vantage): Route[] {
  return servicePortsOf(service, vantage.family).map((port) =>
    routeOf(port, endpointsOf(slices, port, vantage), vantage),
  )
}

export function usesCluster(port: ServicePort): boolean {
  // Who is on the node itself passes by a policy that is for the outside, so its endpoints are needed as well.
  return !port.isInternalLocal || isExternal(port)
}

export function usesLocal(port: ServicePort): boolean {
  return port.isInternalLocal || (port.isExternalLocal && isExternal(port))
}

/** All that this node may send packets to, each once. */
export function reachable({ cluster, local }: Route): Endpoint[] {
  const all = new Map([...cluster, ...local].map((one) => [`${one.ip} ${one.port}`, one]))
  return [...all.values()]
}

export function routeOf(port: ServicePort, endpoints: readonly Endpoint[], vantage: Vantage): Route {
  const cluster = usesCluster(port) ? clusterEndpoints(endpoints, vantage) : []
  const local = usesLocal(port) ? readyOrLeaving(endpoints.filter(({ isLocal }) => isLocal)) : []
  const isSomewhere = usesLocal(port) && endpoints.some((one) => one.isReady || isLeaving(one))
  const here = port.healthCheckNodePort === 0 ? [] : endpoints.filter(({ isLocal, isReady }) => isLocal && isReady)
  return {
    port,
    cluster,
    local,
    hasEndpoints: cluster.length > 0 || isSomewhere,
    endpoints: endpoints.length,
    serving: port.protocol === 'udp' ? endpoints.filter(({ isServing }) => isServing) : [],
    readyHere: here.map(({ ip }) => ip),
  }
}

function clusterEndpoints(endpoints: readonly Endpoint[], vantage: Vantage): readonly Endpoint[] {
  const ready = endpoints.filter(({ isReady }) => isReady)
  if (ready.length === 0) return endpoints.filter(isLeaving)
  return (
    nearest(ready, ({ nodeHints }) => nodeHints, vantage.nodeName) ??
    nearest(ready, ({ zoneHints }) => zoneHints, vantage.zone) ??
    ready
  )
}

/** Those that are meant for here; undefined when some are meant for nobody in particular, or none for here: then all count. */
function nearest(
  ready: readonly Endpoint[],
  hintsOf: (endpoint: Endpoint) => readonly string[],
  here: string,
): readonly Endpoint[] | undefined {
  if (ready.some((one) => hintsOf(one).length === 0)) return undefined
  const own = ready.filter((one) => hintsOf(one).includes(here))
  return own.length === 0 ? undefined : own
}

/** While a pod ends it may serve, and is better than nobody. */
function readyOrLeaving(endpoints: readonly Endpoint[]): readonly Endpoint[] {
  const ready = endpoints.filter(({ isReady }) => isReady)
  return ready.length > 0 ? ready : endpoints.filter(isLeaving)
}

function isLeaving({ isServing, isTerminating }: Endpoint): boolean {
  return isServing && isTerminating
}
