/**
 * Decides which addresses the API server may proxy to. Users write node, pod and endpoint addresses, and must not reach
 * the API server itself or a cloud's metadata service through them.
 */

import type { Exchange } from '#lib/http/exchange.ts'
import { contains, parseCidr, parseIp } from '#lib/net/cidr.ts'
import { badRequestError } from '#meta/status-errors.ts'

/** The name resolver. */
export interface Network {
  /** All addresses of a host name. */
  readonly lookup: (host: string) => Promise<readonly string[]>
  /** Maps an allowed address to the address to connect to; the identity by default. */
  readonly routeTo?: (address: string) => string
  /** Maps an allowed address to a kubelet of this process that listens elsewhere, for this machine only. */
  readonly kubeletAddress?: (address: string) => string | undefined
  /** Returns the handler of a kubelet in this process, which needs no connection; none by default. */
  readonly kubeletAt?: (host: string) => ((exchange: Exchange) => Promise<void>) | undefined
}

const blocks = (texts: string): ReturnType<typeof parseCidr>[] => texts.split(' ').map((text) => parseCidr(text))

/** Unspecified, broadcast, multicast and link-local addresses. */
const NEVER = blocks('0.0.0.0/32 255.255.255.255/32 169.254.0.0/16 224.0.0.0/4 ::/128 fe80::/10 ff00::/8')
const LOOPBACK = blocks('127.0.0.0/8 ::1/128')

function isIn(list: typeof NEVER, address: string): boolean {
  const ip = parseIp(address, { sloppy: true })
  return ip === undefined || list.some((block) => block !== undefined && contains(block, ip))
}

/** A kubelet may run on the API server's own machine. */
export function isKubeletAddress(address: string): boolean {
  return !isIn(NEVER, address)
}

/** Like Go's IsGlobalUnicast, including private networks: the allowed addresses for users' requests. */
export function isGlobalUnicast(address: string): boolean {
  return !isIn(NEVER, address) && !isIn(LOOPBACK, address)
}

/**
 * Resolves a host and checks all its addresses. The caller must connect to the returned one: a second look-up at a
 * hostile name server may differ (CVE-2020-8562).
 */
export async function allowedAddress(
  host: string,
  { lookup, routeTo = (address) => address }: Network,
  isAllowed: (address: string) => boolean,
): Promise<string> {
  const addresses = parseIp(host, { sloppy: true }) === undefined ? await lookup(host) : [host]
  const [first] = addresses
  if (first === undefined) throw badRequestError('no addresses for hostname')
  if (!addresses.every(isAllowed)) throw badRequestError('address not allowed')
  return routeTo(first)
}
