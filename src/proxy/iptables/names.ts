/** Generates the names of iptables chains as upstream does, because users and programs look for them. */
import { createHash } from 'node:crypto'

import { destination, type Endpoint } from '../endpoints.ts'
import type { ServicePort } from '../service-port.ts'

const PREFIXES = {
  /** Any endpoint of a Service. */
  cluster: 'KUBE-SVC-',
  /** Endpoints on this node. */
  local: 'KUBE-SVL-',
  /** The entry for external traffic. */
  external: 'KUBE-EXT-',
  /** Load balancer source ranges. */
  firewall: 'KUBE-FW-',
} as const
const ENDPOINT = 'KUBE-SEP-'
const HASH_CHARS = 16
const BASE32 = 'ABCDEFGHIJKLMNOPQRSTUVWXYZ234567'

export function chainName(kind: keyof typeof PREFIXES, { name, protocol }: ServicePort): string {
  return `${PREFIXES[kind]}${hashed(`${name}${protocol}`)}`
}

export function endpointChainName({ name, protocol }: ServicePort, endpoint: Pick<Endpoint, 'ip' | 'port'>): string {
  return `${ENDPOINT}${hashed(`${name}${protocol}${destination(endpoint)}`)}`
}

/** Whether the chain belongs to one Service, unlike the fixed ones. */
export function isServiceChain(name: string): boolean {
  return name.startsWith(ENDPOINT) || Object.values(PREFIXES).some((prefix) => name.startsWith(prefix))
}

/** The first 80 bits of the digest in base32. */
function hashed(text: string): string {
  const digest = createHash('sha256').update(text).digest()
  let [bits, buffer, out] = [0, 0, '']
  for (const byte of digest) {
    buffer = ((buffer << 8) | byte) & 0xff_ff
    for (bits += 8; bits >= 5; bits -= 5) out += BASE32[(buffer >> (bits - 5)) & 31]
    if (out.length >= HASH_CHARS) break
  }
  return out.slice(0, HASH_CHARS)
}
