/**
 * Allocates single addresses for Services, and address blocks for Nodes. It works in memory; the caller synchronizes it
 * with the API.
 */

import type { Random } from '../random.ts'
import { bitsOf, type Cidr, cidrOf, cidrSize, formatCidr, type Ip, overlaps } from './cidr.ts'

export interface IpAllocator {
  /** False when the address is taken or none of the block's usable ones. */
  allocate(ip: Ip): boolean
  /**
   * A random free address, preferably from the upper band: the lower one is left for requests of a certain address.
   * Undefined if all are taken.
   */
  allocateNext(): Ip | undefined
  /** False when it was not taken. */
  release(ip: Ip): boolean
  has(ip: Ip): boolean
  /** Whether the address is one that can be allocated at all. */
  covers(ip: Ip): boolean
  readonly used: number
  readonly free: bigint
}

/** No allocator looks at more addresses than these; upstream's limit too. */
const MAX_SIZE = 1n << 64n

/** The usable addresses of a block, as offsets from its base, and where the upper band begins. */
export interface IpBands {
  readonly first: bigint
  readonly upper: bigint
  /** The first one that is not usable any more. */
  readonly end: bigint
}

/** Leaves out the first address, which names the network, and IPv4's last, which is the broadcast address. */
export function planIpBands(cidr: Cidr): IpBands {
  const size = cidrSize(cidr) < MAX_SIZE ? cidrSize(cidr) : MAX_SIZE
  const end = cidr.family === 4 ? size - 1n : size
  if (end <= 1n) return { first: 1n, upper: 1n, end: 1n }
  return { first: 1n, upper: 1n + staticBand(size), end }
}

/** min(max(16, size / 16), 256), KEP-3070; nothing for blocks that are too small to be split. */
function staticBand(size: bigint): bigint {
  if (size <= 16n) return 0n
  const share = size / 16n
  if (share < 16n) return 16n
  return share > 256n ? 256n : share
}

export function createIpAllocator(cidr: Cidr, random: Random): IpAllocator {
  const bands = planIpBands(cidr)
  /** Offsets from the base. */
  const taken = new Set<bigint>()
  const covers = (ip: Ip): boolean => {
    const offset = ip.value - cidr.base
    return ip.family === cidr.family && offset >= bands.first && offset < bands.end
  }
  const take = (offset: bigint | undefined): Ip | undefined => {
    if (offset === undefined) return undefined
    taken.add(offset)
    return { family: cidr.family, value: cidr.base + offset }
  }
  return {
    covers,
    has: (ip) => covers(ip) && taken.has(ip.value - cidr.base),
    allocate(ip) {
      if (!covers(ip) || taken.has(ip.value - cidr.base)) return false
      taken.add(ip.value - cidr.base)
      return true
    },
    allocateNext() {
      if (BigInt(taken.size) === bands.end - bands.first) return undefined
      return take(findFree(taken, bands.upper, bands.end, random) ?? findFree(taken, bands.first, bands.upper, random))
    },
    release: (ip) => covers(ip) && taken.delete(ip.value - cidr.base),
    get used() {
      return taken.size
    },
    get free() {
      return bands.end - bands.first - BigInt(taken.size)
    },
  }
}

/** The first offset that is free from a random one on, around the end. */
function findFree(taken: ReadonlySet<bigint>, from: bigint, end: bigint, random: Random): bigint | undefined {
  const size = end - from
  if (size <= 0n) return undefined
  const start = randomBelow(size, random)
  // One more than are taken is enough to look at.
  const tries = size < BigInt(taken.size) + 1n ? size : BigInt(taken.size) + 1n
  for (let step = 0n; step < tries; step++) {
    const offset = from + ((start + step) % size)
    if (!taken.has(offset)) return offset
  }
  return undefined
}

/** Evenly enough: the bias is below 2^-64. */
function randomBelow(bound: bigint, random: Random): bigint {
  return BigInt(`0x${random.bytes(16).toString('hex')}`) % bound
}

/** Why a block cannot be had or marked. */
export class CidrError extends Error {
  constructor(message: string) {
    super(message)
    this.name = 'CidrError'
  }
}

export interface CidrAllocator {
  /** The next free block, in order, around the end. Throws a CidrError when there is none. */
  allocateNext(): Cidr
  /** Takes every block that overlaps, taken or not. Throws a CidrError when none can. */
  occupy(cidr: Cidr): void
  /** Gives every block back that overlaps. Throws a CidrError when none can. */
  release(cidr: Cidr): void
  readonly used: number
  readonly size: number
}

/** As many blocks as upstream's bitmap may have, per 2. */
const MAX_CIDR_BITS = 16

/** Blocks of `prefixLength` out of `cluster`. Throws a CidrError when the two do not go together. */
export function createCidrAllocator(cluster: Cidr, prefixLength: number): CidrAllocator {
  const bits = prefixLength - cluster.prefixLength
  if (bits < 0 || prefixLength > bitsOf(cluster.family)) {
    throw new CidrError(`node CIDR mask size ${prefixLength} does not fit the cluster CIDR ${formatCidr(cluster)}`)
  }
  // Upstream bounds IPv6 only; 2^20 IPv4 blocks are past any cluster, too.
  if (bits > (cluster.family === 6 ? MAX_CIDR_BITS : MAX_CIDR_BITS + 4)) {
    throw new CidrError('New CIDR set failed; the node CIDR size is too big')
  }
  const size = 1 << bits
  const shift = BigInt(bitsOf(cluster.family) - prefixLength)
  const taken = new Set<number>()
  /** Blocks are allocated in rotation, so that a released one is not reused next. */
  let next = 0
  const blocksOf = (cidr: Cidr): readonly [first: number, last: number] => {
    if (!overlaps(cluster, cidr)) {
      throw new CidrError(`cidr ${formatCidr(cidr)} is out the range of cluster cidr ${formatCidr(cluster)}`)
    }
    const first = (cidr.base - cluster.base) >> shift
    const last = (cidr.base + cidrSize(cidr) - 1n - cluster.base) >> shift
    return [Math.max(0, Number(first)), Math.min(size - 1, Number(last))]
  }
  return {
    size,
    get used() {
      return taken.size
    },
    allocateNext() {
      if (taken.size === size) {
        throw new CidrError(
          'CIDR allocation failed; there are no remaining CIDRs left to allocate in the accepted range',
        )
      }
      while (taken.has(next)) next = (next + 1) % size
      const value = cluster.base + (BigInt(next) << shift)
      taken.add(next)
      next = (next + 1) % size
      return cidrOf({ family: cluster.family, value }, prefixLength)
    },
    occupy(cidr) {
      const [first, last] = blocksOf(cidr)
      for (let block = first; block <= last; block++) taken.add(block)
    },
    release(cidr) {
      const [first, last] = blocksOf(cidr)
      for (let block = first; block <= last; block++) taken.delete(block)
    },
  }
}
