/** Derives properties of a Service from its type and fields, such as whether it needs a cluster IP. */
import type { Pod, ServicePort, ServiceSpec } from '#apis/core/v1.ts'

export type IpFamily = 'IPv4' | 'IPv6'

/** The label of IPAddress objects that the API server manages for Services, and its value. */
export const ADDRESS_MANAGED_BY = 'ipaddress.kubernetes.io/managed-by'
export const ADDRESS_MANAGER = 'ipallocator.k8s.io'

/** The cluster IP of a headless Service. */
export const HEADLESS = 'None'

export function otherFamily(family: string): IpFamily {
  return family === 'IPv4' ? 'IPv6' : 'IPv4'
}

/** Includes headless ones: the same field contains None. */
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

/** True if it has node ports, given or allocated. */
export function usesNodePorts({ type }: ServiceSpec): boolean {
  return type === 'NodePort' || type === 'LoadBalancer'
}

/** True if each of its ports gets a node port. */
export function allocatesNodePorts({ type, allocateLoadBalancerNodePorts: allocates }: ServiceSpec): boolean {
  return type === 'NodePort' || (type === 'LoadBalancer' && allocates !== false)
}

export function isExternallyAccessible(spec: ServiceSpec): boolean {
  return usesNodePorts(spec) || (spec.type === 'ClusterIP' && (spec.externalIPs ?? []).length > 0)
}

/** True if a load balancer checks nodes for local endpoints. */
export function needsHealthCheck({ type, externalTrafficPolicy }: ServiceSpec): boolean {
  return type === 'LoadBalancer' && externalTrafficPolicy === 'Local'
}

/** All node ports of its ports, with duplicates. */
export function nodePortsOf({ ports = [] }: ServiceSpec): number[] {
  return ports.flatMap(({ nodePort = 0 }) => (nodePort === 0 ? [] : [nodePort]))
}

/** All distinct node ports, including the health check port. */
export function requestedNodePorts(spec: ServiceSpec): Set<number> {
  const { healthCheckNodePort = 0 } = spec
  return new Set([
    ...nodePortsOf(spec),
    ...(needsHealthCheck(spec) && healthCheckNodePort > 0 ? [healthCheckNodePort] : []),
  ])
}

/** The number of the target port; undefined if the pod has no port of that name. */
export function targetPortOf({ spec }: Pod, { targetPort, protocol = 'TCP', port }: ServicePort): number | undefined {
  if (typeof targetPort === 'number') return targetPort === 0 ? port : targetPort
  const sidecars = (spec.initContainers ?? []).filter(({ restartPolicy }) => restartPolicy === 'Always')
  const ports = [...(spec.containers ?? []), ...sidecars].flatMap((container) => container.ports ?? [])
  const found = ports.find((one) => one.name === targetPort && (one.protocol ?? 'TCP') === protocol)
  return found?.containerPort
}
