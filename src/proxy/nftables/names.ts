/** Generates the names of nftables chains and sets of Services: a hash and readable parts. */
import { createHash } from 'node:crypto'

import type { Endpoint } from '../endpoints.ts'
import type { ServicePort } from '../service-port.ts'

/** nftables names have less than 256 bytes; the longest prefix has 9. */
const MOST_CHARS = 240
const HASH_CHARS = 8

/** `service-5OJB2KTY-ns1/svc1/tcp/p80`. */
export function chainName(prefix: 'service' | 'local' | 'external' | 'firewall', port: ServicePort): string {
  return `${prefix}-${named(base(port))}`
}

export function endpointChainName(port: ServicePort, endpoint: Endpoint): string {
  return `endpoint-${named(endpointBase(port, endpoint))}`
}

/** The set of recent clients. Its timeout is fixed, so another timeout needs another set. */
export function affinitySetName(port: ServicePort, endpoint: Endpoint): string {
  return `affinity-${named(`${endpointBase(port, endpoint)}/${port.affinitySeconds}`)}`
}

/** Whether the chain belongs to Services, shared or not, unlike the fixed ones. */
export function isServiceChain(name: string): boolean {
  return name.includes('/')
}

export function isAffinitySet(name: string): boolean {
  return name.startsWith('affinity-')
}

function base({ namespace, service, protocol, portName }: ServicePort): string {
  return `${namespace}/${service}/${protocol}/${portName}`
}

function endpointBase(port: ServicePort, { ip, port: number }: Endpoint): string {
  return `${base(port)}__${ip.replaceAll(':', '.')}/${number}`
}

function named(text: string): string {
  const hash = createHash('sha256').update(text).digest('hex').slice(0, HASH_CHARS).toUpperCase()
  // Only valid name characters reach a rule, whatever the API server sends.
  return `${hash}-${text.replaceAll(/[^A-Za-z0-9/._-]/g, '_')}`.slice(0, MOST_CHARS)
}
