/**
 * What a port of a Service is to a node, for one family of addresses. Whatever others may write into a Service comes out of here
 * parsed, in one spelling and harmless: nothing else of it reaches a rule. Pure.
 */
import type { LoadBalancerIngress, Service, ServiceSpec } from '#apis/core/v1.ts'
import { type Cidr, contains, formatCidr, formatIp, overlaps, parseCidr, parseIp } from '#lib/cidr.ts'
import { clusterIpsOf, HEADLESS, type IpFamily, isExternallyAccessible, needsHealthCheck } from '#model/services.ts'

import { isHarmless } from './harmless.ts'

export type Protocol = 'tcp' | 'udp' | 'sctp'

export interface ServicePort {
  /** `namespace/name`, and `:port` where it has a name: as upstream's logs call it. */
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
  /** Who may use the load balancer's addresses, in the order of the Service; empty: everybody. */
  readonly sourceRanges: readonly string[]
  /** How long a client stays with its endpoint; 0: it need not. */
  readonly affinitySeconds: number
  readonly isInternalLocal: boolean
  readonly isExternalLocal: boolean
  /** 0: none. */
  readonly healthCheckNodePort: number
}

const PROTOCOLS: Readonly<Record<string, Protocol>> = { TCP: 'tcp', UDP: 'udp', SCTP: 'sctp' }
/** As the API server fills it in. */
const AFFINITY_SECONDS = 10_800

/** Undefined for protocols that nobody knows. */
export function protocolOf(text: string | undefined): Protocol | undefined {
  return PROTOCOLS[text ?? 'TCP']
}

/** In the order of the Service; none where it is not for a node's rules, or has no address of the family. */
export function servicePortsOf(object: Service, family: IpFamily): ServicePort[] {
  const { metadata, spec } = object
  const { namespace = '', name: service = '' } = metadata
  const clusterIp = clusterIpFor(spec, family)
  if (clusterIp === undefined || spec.type === 'ExternalName') return []
  const shared = { namespace, service, clusterIp, ...waysIn(object, family), ...policies(spec) }
  return (spec.ports ?? []).flatMap(({ name: portName = '', protocol: text, port, nodePort = 0 }) => {
    const protocol = protocolOf(text)
    if (protocol === undefined || !isPort(port)) return []
    const name = `${namespace}/${service}${portName === '' ? '' : `:${portName}`}`
    return [{ ...shared, name, portName, protocol, port, nodePort: isPort(nodePort) ? nodePort : 0 }]
  })
}

function waysIn(
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

/** Whether it is reached by anything but its cluster IP. */
export function isExternal({ nodePort, loadBalancerIps, externalIps }: ServicePort): boolean {
  return nodePort !== 0 || loadBalancerIps.length > 0 || externalIps.length > 0
}

export function isPort(port: number | undefined): port is number {
  return Number.isInteger(port) && Number(port) > 0 && Number(port) < 65_536
}

/** The text of an address of the family, in the one spelling; undefined for all else, and for those no packet should go to. */
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

/** Those of load balancers that proxy are not those packets are sent to. */
function ownedIp({ ip = '', ipMode = 'VIP' }: LoadBalancerIngress): string[] {
  return ip !== '' && ipMode === 'VIP' ? [ip] : []
}

/** Those who leave nobody out are no ranges at all. */
function sourceRangesOf(texts: readonly string[], family: IpFamily): string[] {
  const all = texts.flatMap((text) => parseCidr(text.trim(), { sloppy: true }) ?? [])
  const own = all.filter((range) => range.family === bits(family))
  return own.some(({ prefixLength }) => prefixLength === 0) ? [] : own.map(formatCidr)
}

/** Blocks overlap only when one holds the other, and nft refuses sets in which they do. */
export function withoutOverlaps(ranges: readonly Cidr[]): Cidr[] {
  const widest = ranges.toSorted((one, other) => one.prefixLength - other.prefixLength)
  return widest.filter((range, at) => !widest.slice(0, at).some((wider) => overlaps(wider, range)))
}

/** Whether one of the ranges holds the address. */
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
