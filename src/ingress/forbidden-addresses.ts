/**
 * Addresses to which no backend may lead: the machine itself, its links and the metadata services of clouds. Anybody who may create
 * a Service of type ExternalName could otherwise reach them through the controller.
 */
import { lookup } from 'node:dns/promises'
import { BlockList, isIP } from 'node:net'

import { HttpError } from '#lib/http/http-error.ts'

const FORBIDDEN = new BlockList()
for (const [network, prefix] of [
  ['0.0.0.0', 8],
  ['127.0.0.0', 8],
  ['169.254.0.0', 16],
] as const)
  FORBIDDEN.addSubnet(network, prefix, 'ipv4')
for (const [network, prefix] of [
  // The unspecified address, loopback, and IPv4 addresses in the old form `::127.0.0.1`.
  ['::', 96],
  ['fe80::', 10],
] as const)
  FORBIDDEN.addSubnet(network, prefix, 'ipv6')
/** Metadata services outside of link-local addresses: Azure's, Alibaba's and, by IPv6, Amazon's. */
for (const address of ['168.63.129.16', '100.100.100.200']) FORBIDDEN.addAddress(address, 'ipv4')
FORBIDDEN.addAddress('fd00:ec2::254', 'ipv6')

/** Of IPv4 and IPv6, in any form; IPv4 inside IPv6 counts as what it is. */
export function isForbiddenAddress(address: string): boolean {
  const [bare = ''] = address.split('%')
  const family = isIP(bare)
  if (family === 0) return false
  const inner = family === 6 ? innerAddress(bare) : undefined
  return FORBIDDEN.check(bare, family === 4 ? 'ipv4' : 'ipv6') || (inner !== undefined && isForbiddenAddress(inner))
}

/** The IPv4 address in one that is translated (`64:ff9b::/96`) or mapped (`::ffff:0:0/96`). */
function innerAddress(address: string): string | undefined {
  if (!MAPPED.check(address, 'ipv6')) return undefined
  const host = new URL(`http://[${address}]`).hostname.slice(1, -1)
  const [high = '0', low = '0'] = host.split(':').slice(-2)
  const bytes = [high, low].flatMap((part) => {
    const value = Number.parseInt(part || '0', 16)
    return [value >> 8, value & 0xff]
  })
  return bytes.join('.')
}

const MAPPED = new BlockList()
MAPPED.addSubnet('::ffff:0:0', 96, 'ipv6')
MAPPED.addSubnet('64:ff9b::', 96, 'ipv6')

/** A backend that leads to a forbidden address. */
export class ForbiddenAddressError extends HttpError {
  constructor(host: string, address: string) {
    super('connect', `"${host}" leads to ${address}, to which no backend may lead`)
  }
}

/**
 * Finds the address to connect to. The address is checked after the name was resolved, and is the one that is connected to: no
 * later answer of a DNS server counts. Throws ForbiddenAddressError if any address of the name is forbidden.
 */
export async function resolveAllowed(
  host: string,
  resolve: (host: string) => Promise<readonly string[]> = resolveHere,
): Promise<string> {
  const addresses = isIP(host) === 0 ? await resolved(host, resolve) : [host]
  const forbidden = addresses.find(isForbiddenAddress)
  if (forbidden !== undefined) throw new ForbiddenAddressError(host, forbidden)
  const [first] = addresses
  if (first === undefined) throw new HttpError('connect', `"${host}" has no address`)
  return first
}

async function resolved(
  host: string,
  resolve: (host: string) => Promise<readonly string[]>,
): Promise<readonly string[]> {
  try {
    return await resolve(host)
  } catch (cause) {
    throw new HttpError('connect', `"${host}" cannot be resolved: ${(cause as Error).message}`, { cause })
  }
}

async function resolveHere(host: string): Promise<readonly string[]> {
  return (await lookup(host, { all: true })).map(({ address }) => address)
}
