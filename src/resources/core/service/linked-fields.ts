/**
 * Completes dependent fields of a Service before validation: clusterIP and clusterIPs, allocated values that the client
 * omits, and fields of certain types. So clients that know only some of the fields can write it
 * (pkg/registry/core/service/storage, v1.36).
 */
import type { Service, ServiceSpec } from '#apis/core/v1.ts'
import { semanticEqual } from '#meta/object.ts'
import { ipFamilyOf } from '#model/addresses.ts'
import {
  allocatesNodePorts,
  HEADLESS,
  type IpFamily,
  isExternallyAccessible,
  needsClusterIp,
  needsHealthCheck,
  nodePortsOf,
  otherFamily,
  usesNodePorts,
} from '#model/services.ts'

/** An old client knows only clusterIP. */
export function normalizeNew(spec: ServiceSpec): void {
  if ((spec.clusterIP ?? '') !== '' && (spec.clusterIPs ?? []).length === 0) spec.clusterIPs = [spec.clusterIP ?? '']
  dropInternalTraffic(spec)
}

/** An ExternalName has no traffic; upstream never sets a policy for it. An invalid one is rejected first. */
function dropInternalTraffic(spec: ServiceSpec): void {
  if (spec.type !== 'ExternalName') return
  if (spec.internalTrafficPolicy === 'Cluster' || spec.internalTrafficPolicy === 'Local')
    delete spec.internalTrafficPolicy
}

export function normalizeUpdate(next: Service, stored: Service, primaryFamily: IpFamily): void {
  const old = completeSpec(stored.spec, primaryFamily)
  keepAllocated(next.spec, old)
  normalizeChanged(next.spec, old)
  dropForeignFields(next.spec, old)
  dropInternalTraffic(next.spec)
  // The removal of the load balancer takes time, but the Service drops it at once.
  if (next.spec.type !== 'LoadBalancer' && next.status !== undefined) next.status = { ...next.status, loadBalancer: {} }
}

/** Completes a spec from before dual stack. */
export function completeSpec(stored: ServiceSpec, primaryFamily: IpFamily): ServiceSpec {
  const spec = { ...stored }
  normalizeNew(spec)
  if (!needsClusterIp(spec) || (spec.ipFamilies ?? []).length > 0) return spec
  if (spec.clusterIP === HEADLESS) {
    const open = Object.keys(spec.selector ?? {}).length === 0
    spec.ipFamilyPolicy = open ? 'RequireDualStack' : 'SingleStack'
    spec.ipFamilies = open ? [primaryFamily, otherFamily(primaryFamily)] : [primaryFamily]
    return spec
  }
  spec.ipFamilies = (spec.clusterIPs ?? []).map((ip) => ipFamilyOf(ip) ?? 'IPv4')
  if (spec.ipFamilies.length > 0)
    spec.ipFamilyPolicy = spec.ipFamilies.length === 1 ? 'SingleStack' : 'RequireDualStack'
  return spec
}

/** Lets a client send its object again without the allocated values. */
function keepAllocated(next: ServiceSpec, old: ServiceSpec): void {
  if (needsClusterIp(old) && needsClusterIp(next)) keepClusterIps(next, old)
  if (allocatesNodePorts(old) && allocatesNodePorts(next)) keepNodePorts(next, old)
  if (!needsHealthCheck(old) || !needsHealthCheck(next)) return
  if (old.healthCheckNodePort !== undefined) next.healthCheckNodePort ||= old.healthCheckNodePort
}

function keepClusterIps(next: ServiceSpec, old: ServiceSpec): void {
  if (old.clusterIP !== undefined) next.clusterIP ||= old.clusterIP
  if ((next.clusterIPs ?? []).length === 0 && old.clusterIPs !== undefined) next.clusterIPs = [...old.clusterIPs]
}

/** By port name, unless the number moved to another port. */
function keepNodePorts(next: ServiceSpec, old: ServiceSpec): void {
  const wanted = new Set(nodePortsOf(next))
  const used = new Set(nodePortsOf(old).filter((port) => wanted.has(port)))
  const byName = new Map((old.ports ?? []).map(({ name = '', nodePort = 0 }) => [name, nodePort]))
  for (const port of next.ports ?? []) {
    const before = byName.get(port.name ?? '') ?? 0
    if ((port.nodePort ?? 0) === 0 && before !== 0 && !used.has(before)) port.nodePort = before
  }
}

function sameIps(next: ServiceSpec, old: ServiceSpec): boolean {
  return semanticEqual(next.clusterIPs, old.clusterIPs)
}

/** Synchronizes clusterIP and clusterIPs after a change of one. Checks nothing else. */
function normalizeChanged(next: ServiceSpec, old: ServiceSpec): void {
  const same = (next.clusterIP ?? '') === (old.clusterIP ?? '')
  if (same) {
    if ((next.clusterIPs ?? []).length === 0 && old.clusterIPs !== undefined) next.clusterIPs = [...old.clusterIPs]
    return
  }
  if (!sameIps(next, old)) return
  if ((next.clusterIP ?? '') === '') delete next.clusterIPs
  else next.clusterIPs = [next.clusterIP ?? '']
}

interface TypedField {
  /** True if the type has the field. */
  readonly belongs: (spec: ServiceSpec) => boolean
  readonly same: (next: ServiceSpec, old: ServiceSpec) => boolean
  readonly drop: (spec: ServiceSpec) => void
}

function sameField(name: keyof ServiceSpec): TypedField['same'] {
  return (next, old) => semanticEqual(next[name], old[name])
}

/** Drops fields of other types. Fields that the client changed as well stay, and validation rejects them. */
const typedFields: readonly TypedField[] = [
  {
    belongs: needsClusterIp,
    same: (next, old) => (next.clusterIP ?? '') === (old.clusterIP ?? '') && sameIps(next, old),
    drop(spec) {
      delete spec.clusterIP
      delete spec.clusterIPs
    },
  },
  { belongs: needsClusterIp, same: sameField('ipFamilies'), drop: (spec) => delete spec.ipFamilies },
  { belongs: needsClusterIp, same: sameField('ipFamilyPolicy'), drop: (spec) => delete spec.ipFamilyPolicy },
  {
    belongs: usesNodePorts,
    same(next, old) {
      const before = new Set(nodePortsOf(old))
      return nodePortsOf(next).every((port) => before.has(port))
    },
    drop(spec) {
      for (const port of spec.ports ?? []) delete port.nodePort
    },
  },
  {
    belongs: needsHealthCheck,
    same: (next, old) => (next.healthCheckNodePort ?? 0) === (old.healthCheckNodePort ?? 0),
    drop: (spec) => delete spec.healthCheckNodePort,
  },
  {
    belongs: ({ type }) => type === 'LoadBalancer',
    same: sameField('allocateLoadBalancerNodePorts'),
    drop: (spec) => delete spec.allocateLoadBalancerNodePorts,
  },
  {
    belongs: ({ type }) => type === 'LoadBalancer',
    same: sameField('loadBalancerClass'),
    drop: (spec) => delete spec.loadBalancerClass,
  },
  {
    belongs: isExternallyAccessible,
    same: (next, old) => (next.externalTrafficPolicy ?? '') === (old.externalTrafficPolicy ?? ''),
    drop: (spec) => delete spec.externalTrafficPolicy,
  },
]

function dropForeignFields(next: ServiceSpec, old: ServiceSpec): void {
  for (const { belongs, same, drop } of typedFields) {
    if (belongs(old) && !belongs(next) && same(next, old)) drop(next)
  }
}
