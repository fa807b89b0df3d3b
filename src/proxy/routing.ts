/**
 * Computes the routes of a Service port on this node: its endpoints for the policies Cluster and Local. Both backends
 * write rules only from these routes. Pure.
 */
import type { Service } from '#apis/core/v1.ts'
import type { EndpointSlice } from '#apis/discovery/v1.ts'

import { type Endpoint, endpointsOf, type Vantage } from './endpoints.ts'
import { isExternal, type ServicePort, servicePortsOf } from './service-port.ts'

export interface Route {
  readonly port: ServicePort
  /** For policy Cluster. */
  readonly cluster: readonly Endpoint[]
  /** For policy Local on this node; empty if no policy needs it. */
  readonly local: readonly Endpoint[]
  /** Whether the cluster has any endpoint: without one traffic is rejected, without a local one it is dropped. */
  readonly hasEndpoints: boolean
  /** The total number of endpoints in any state. */
  readonly endpoints: number
  /** UDP only: all endpoints that flows may stay with, independent of policies. */
  readonly serving: readonly Endpoint[]
  /** For Services with a health check port: ready local addresses. */
  readonly readyHere: readonly string[]
}

/** One for each port of the Service. */
export function routesOf(service: Service, slices: readonly EndpointSlice[], vantage: Vantage): Route[] {
  return servicePortsOf(service, vantage.family).map((port) =>
    routeOf(port, endpointsOf(slices, port, vantage), vantage),
  )
}

export function usesCluster(port: ServicePort): boolean {
  // Local clients bypass the external policy, so cluster endpoints are needed too.
  return !port.isInternalLocal || isExternal(port)
}

export function usesLocal(port: ServicePort): boolean {
  return port.isInternalLocal || (port.isExternalLocal && isExternal(port))
}

/** All endpoints that this node may use, without duplicates. */
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

/** Endpoints with hints for here; undefined: use all, because hints are incomplete or none is for here. */
function nearest(
  ready: readonly Endpoint[],
  hintsOf: (endpoint: Endpoint) => readonly string[],
  here: string,
): readonly Endpoint[] | undefined {
  if (ready.some((one) => hintsOf(one).length === 0)) return undefined
  const own = ready.filter((one) => hintsOf(one).includes(here))
  return own.length === 0 ? undefined : own
}

/** Terminating endpoints that still serve are used if there are no ready ones. */
function readyOrLeaving(endpoints: readonly Endpoint[]): readonly Endpoint[] {
  const ready = endpoints.filter(({ isReady }) => isReady)
  return ready.length > 0 ? ready : endpoints.filter(isLeaving)
}

function isLeaving({ isServing, isTerminating }: Endpoint): boolean {
  return isServing && isTerminating
}
