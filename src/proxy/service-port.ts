/** Parses a Service port for one address family. All user input in rules is normalized and checked here. Pure. */
import type { LoadBalancerIngress, Service, ServiceSpec } from '#apis/core/v1.ts'
import { type Cidr, contains, formatCidr, formatIp, overlaps, parseCidr, parseIp } from '#lib/net/cidr.ts'
import { clusterIpsOf, HEADLESS, type IpFamily, isExternallyAccessible, needsHealthCheck } from '#model/services.ts'

import { isHarmless } from './harmless.ts'

export type Protocol = 'tcp' | 'udp' | 'sctp'

export interface ServicePort {
  /** `namespace/name`, with `:port` if named: as in upstream's logs. */
  readonly name: string
  readonly namespace: string
  readonly service: string
  readonly portName: string
  readonly protocol: Protocol
  readonly clusterIp: string
  readonly port: number
  /** 0: none. */
  readonly nodePort: number
  readonly externalIps: readonly string[]
  readonly loadBalancerIps: readonly string[]
  /** Source ranges of the load balancer, in order; empty: all. */
  readonly sourceRanges: readonly string[]
  /** The session affinity timeout; 0: none. */
  readonly affinitySeconds: number
  readonly isInternalLocal: boolean
  readonly isExternalLocal: boolean
  /** 0: none. */
  readonly healthCheckNodePort: number
}

const PROTOCOLS: Readonly<Record<string, Protocol>> = { TCP: 'tcp', UDP: 'udp', SCTP: 'sctp' }
/** The API server's default. */
const AFFINITY_SECONDS = 10_800

/** Undefined for unknown protocols. */
export function protocolOf(text: string | undefined): Protocol | undefined {
  return PROTOCOLS[text ?? 'TCP']
}

/** In the Service's order; empty without rules on nodes, or without an address of the family. */
export function servicePortsOf(object: Service, family: IpFamily): ServicePort[] {
  const { metadata, spec } = object
  const { namespace = '', name: service = '' } = metadata
  const clusterIp = clusterIpFor(spec, family)
  if (clusterIp === undefined || spec.type === 'ExternalName') return []
  const shared = { namespace, service, clusterIp, ...frontendsOf(object, family), ...policies(spec) }
  return (spec.ports ?? []).flatMap(({ name: portName = '', protocol: text, port, nodePort = 0 }) => {
    const protocol = protocolOf(text)
    if (protocol === undefined || !isPort(port)) return []
    const name = `${namespace}/${service}${portName === '' ? '' : `:${portName}`}`
    return [{ ...shared, name, portName, protocol, port, nodePort: isPort(nodePort) ? nodePort : 0 }]
  })
}

function frontendsOf(
  { spec, status }: Service,
  family: IpFamily,
): Pick<ServicePort, 'externalIps' | 'loadBalancerIps' | 'sourceRanges'> {
  return {
    externalIps: addressesOf(spec.externalIPs ?? [], family),
    loadBalancerIps: addressesOf((status.loadBalancer.ingress ?? []).flatMap(ownedIp), family),
    sourceRanges: sourceRangesOf(spec.loadBalancerSourceRanges ?? [], family),
  }
}

function policies(
  spec: ServiceSpec,
): Pick<ServicePort, 'affinitySeconds' | 'isInternalLocal' | 'isExternalLocal' | 'healthCheckNodePort'> {
  const { timeoutSeconds = AFFINITY_SECONDS } = spec.sessionAffinityConfig?.clientIP ?? {}
  return {
    affinitySeconds: spec.sessionAffinity === 'ClientIP' ? timeoutSeconds : 0,
    isInternalLocal: spec.internalTrafficPolicy === 'Local',
    isExternalLocal: isExternallyAccessible(spec) && spec.externalTrafficPolicy === 'Local',
    healthCheckNodePort: needsHealthCheck(spec) ? (spec.healthCheckNodePort ?? 0) : 0,
  }
}

/** Whether it has addresses beside its cluster IP. */
export function isExternal({ nodePort, loadBalancerIps, externalIps }: ServicePort): boolean {
  return nodePort !== 0 || loadBalancerIps.length > 0 || externalIps.length > 0
}

export function isPort(port: number | undefined): port is number {
  return Number.isInteger(port) && Number(port) > 0 && Number(port) < 65_536
}

/** The canonical address of the family; undefined if invalid or harmful. */
export function harmlessIp(text: string, family: IpFamily): string | undefined {
  const ip = parseIp(text, { sloppy: true })
  return ip === undefined || ip.family !== bits(family) || !isHarmless(ip) ? undefined : formatIp(ip)
}

function clusterIpFor(spec: ServiceSpec, family: IpFamily): string | undefined {
  for (const text of clusterIpsOf(spec)) {
    const found = text === HEADLESS ? undefined : harmlessIp(text, family)
    if (found !== undefined) return found
  }
  return undefined
}

function addressesOf(texts: readonly string[], family: IpFamily): string[] {
  return [...new Set(texts.flatMap((text) => harmlessIp(text, family) ?? []))]
}

/** Addresses of proxying load balancers receive no packets on nodes. */
function ownedIp({ ip = '', ipMode = 'VIP' }: LoadBalancerIngress): string[] {
  return ip !== '' && ipMode === 'VIP' ? [ip] : []
}

/** A range with all addresses counts as none. */
function sourceRangesOf(texts: readonly string[], family: IpFamily): string[] {
  const all = texts.flatMap((text) => parseCidr(text.trim(), { sloppy: true }) ?? [])
  const own = all.filter((range) => range.family === bits(family))
  return own.some(({ prefixLength }) => prefixLength === 0) ? [] : own.map(formatCidr)
}

/** CIDRs overlap only by containment, and nft rejects overlapping sets. */
export function withoutOverlaps(ranges: readonly Cidr[]): Cidr[] {
  const widest = ranges.toSorted((one, other) => one.prefixLength - other.prefixLength)
  return widest.filter((range, at) => !widest.slice(0, at).some((wider) => overlaps(wider, range)))
}

/** Whether a range contains the address. */
export function holds(ranges: readonly string[], address: string): boolean {
  const ip = parseIp(address)
  return ip !== undefined && ranges.some((text) => isIn(parseCidr(text), ip))
}

function isIn(range: Cidr | undefined, ip: NonNullable<ReturnType<typeof parseIp>>): boolean {
  return range !== undefined && contains(range, ip)
}

function bits(family: IpFamily): 4 | 6 {
  return family === 'IPv4' ? 4 : 6
}
