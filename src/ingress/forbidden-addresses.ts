/**
 * Decides which addresses the controller must not connect to: the machine itself, link-local addresses and cloud
 * metadata services. Otherwise any user who may create a Service of type ExternalName could reach them.
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
/** Metadata services outside of link-local addresses: Azure's, Alibaba's and Oracle's and, by IPv6, Amazon's and Google's. */
for (const address of ['168.63.129.16', '100.100.100.200', '192.0.0.192']) FORBIDDEN.addAddress(address, 'ipv4')
for (const address of ['fd00:ec2::254', 'fd20:ce::254']) FORBIDDEN.addAddress(address, 'ipv6')

/** IPv4 and IPv6 in any notation; IPv4 embedded in IPv6 counts as IPv4. */
export function isForbiddenAddress(address: string): boolean {
  const [bare = ''] = address.split('%')
  const family = isIP(bare)
  if (family === 0) return false
  const inner = family === 6 ? innerAddress(bare) : undefined
  return FORBIDDEN.check(bare, family === 4 ? 'ipv4' : 'ipv6') || (inner !== undefined && isForbiddenAddress(inner))
}

/** IPv6 networks whose addresses lead to an IPv4 address inside them, and where that begins, in groups of 16 bits. */
const EMBEDDING = (
  [
    // Mapped (RFC 4291) and translated (RFC 2765).
    ['::ffff:0:0', 96, 6],
    ['::ffff:0:0:0', 96, 6],
    // NAT64: the well-known network (RFC 6052) and the one for local use (RFC 8215).
    ['64:ff9b::', 96, 6],
    ['64:ff9b:1::', 48, 6],
    // 6to4 (RFC 3056).
    ['2002::', 16, 1],
  ] as const
).map(([network, prefix, begins]) => {
  const block = new BlockList()
  block.addSubnet(network, prefix, 'ipv6')
  return { block, begins }
})

function innerAddress(address: string): string | undefined {
  const found = EMBEDDING.find(({ block }) => block.check(address, 'ipv6'))
  if (found === undefined) return undefined
  const groups = groupsOf(address).slice(found.begins, found.begins + 2)
  return groups.flatMap((group) => [group >> 8, group & 0xff]).join('.')
}

/** The eight groups of an IPv6 address. */
function groupsOf(address: string): number[] {
  // The URL has the address without leading zeros and dots.
  const text = new URL(`http://[${address}]`).hostname.slice(1, -1)
  const [head = [], tail = []] = text
    .split('::')
    .map((part) => part.split(':').flatMap((group) => (group === '' ? [] : [Number.parseInt(group, 16)])))
  return [...head, ...Array.from({ length: 8 - head.length - tail.length }, () => 0), ...tail]
}

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
