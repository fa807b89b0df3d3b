/**
 * Fields of a Service that hang together: the one cluster IP and the list, what was allocated and what the client sent,
 * the type and what only some types have. Here the server makes out what a client means that knows some of them only,
 * before anything is validated (pkg/registry/core/service/storage, v1.36).
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

/** An old client knows the one address only. */
export function normalizeNew(spec: ServiceSpec): void {
  if ((spec.clusterIP ?? '') !== '' && (spec.clusterIPs ?? []).length === 0) spec.clusterIPs = [spec.clusterIP ?? '']
  dropInternalTraffic(spec)
}

/** A name elsewhere has no traffic of its own; upstream never shows a policy for it. One that is none is refused first. */
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
  // Taking the load balancer down takes a while, but it is no longer this Service's.
  if (next.spec.type !== 'LoadBalancer' && next.status !== undefined) next.status = { ...next.status, loadBalancer: {} }
}

/** The spec as a release of today would have stored it, of a Service from before there were lists and families. */
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

/** So that a client can send again what it created, without what it was given. */
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

/** By the name of the port, unless the number went to another one. */
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

/** The one address and the list, when one of them was changed. Looks at nothing else. */
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
  /** Whether a Service of that kind has it. */
  readonly belongs: (spec: ServiceSpec) => boolean
  readonly same: (next: ServiceSpec, old: ServiceSpec) => boolean
  readonly drop: (spec: ServiceSpec) => void
}

function sameField(name: keyof ServiceSpec): TypedField['same'] {
  return (next, old) => semanticEqual(next[name], old[name])
}

/** Fields that only some types have. One that the client changed as well is left, for validation to refuse. */
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
