/** What the fields of a Service mean together: its type decides which of the others it has. */
import type { ServiceSpec } from '#apis/core/v1.ts'

export type IpFamily = 'IPv4' | 'IPv6'

/** Label of an IPAddress that the API server keeps for a Service, and what it says there. */
export const ADDRESS_MANAGED_BY = 'ipaddress.kubernetes.io/managed-by'
export const ADDRESS_MANAGER = 'ipallocator.k8s.io'

/** In place of a cluster IP, for a Service that is only a name for its endpoints. */
export const HEADLESS = 'None'

export function otherFamily(family: string): IpFamily {
  return family === 'IPv4' ? 'IPv6' : 'IPv4'
}

/** Also a headless one: that it has none is said in the same field. */
export function needsClusterIp({ type }: ServiceSpec): boolean {
  return type !== 'ExternalName'
}

export function isHeadless({ clusterIPs = [] }: ServiceSpec): boolean {
  return clusterIPs.length === 1 && clusterIPs[0] === HEADLESS
}

/** The cluster IPs that are addresses. */
export function clusterIpsOf(spec: ServiceSpec): readonly string[] {
  const { clusterIPs = [] } = spec
  return needsClusterIp(spec) && clusterIPs[0] !== HEADLESS ? clusterIPs.filter((ip) => ip !== '') : []
}

/** Has ports on every node, given or allocated. */
export function usesNodePorts({ type }: ServiceSpec): boolean {
  return type === 'NodePort' || type === 'LoadBalancer'
}

/** Gets a port on every node for each of its ports. */
export function allocatesNodePorts({ type, allocateLoadBalancerNodePorts: allocates }: ServiceSpec): boolean {
  return type === 'NodePort' || (type === 'LoadBalancer' && allocates !== false)
}

export function isExternallyAccessible(spec: ServiceSpec): boolean {
  return usesNodePorts(spec) || (spec.type === 'ClusterIP' && (spec.externalIPs ?? []).length > 0)
}

/** A load balancer that must not send to nodes without an endpoint asks them whether they have one. */
export function needsHealthCheck({ type, externalTrafficPolicy }: ServiceSpec): boolean {
  return type === 'LoadBalancer' && externalTrafficPolicy === 'Local'
}

/** Every node port of its ports, as often as it is there. */
export function nodePortsOf({ ports = [] }: ServiceSpec): number[] {
  return ports.flatMap(({ nodePort = 0 }) => (nodePort === 0 ? [] : [nodePort]))
}

/** All ports it holds on nodes, the one of its health check included; each once. */
export function heldNodePorts(spec: ServiceSpec): Set<number> {
  const { healthCheckNodePort = 0 } = spec
  return new Set([
    ...nodePortsOf(spec),
    ...(needsHealthCheck(spec) && healthCheckNodePort > 0 ? [healthCheckNodePort] : []),
  ])
}
