/**
 * Parses and formats IP addresses and CIDR blocks as Kubernetes requires: no leading zeros, no IPv4-mapped IPv6, IPv6
 * by RFC 5952. An address is a family and a bigint, so ranges are plain arithmetic.
 */
import { parseDotted } from './ipv4.ts'

export interface Ip {
  readonly family: 4 | 6
  /** Below 2^32 or 2^128. */
  readonly value: bigint
}

/** A block of addresses that share their first `prefixLength` bits. */
export interface Cidr {
  readonly family: 4 | 6
  /** The first address: all bits behind the prefix are 0. */
  readonly base: bigint
  readonly prefixLength: number
  /** The address as it was written, which may be any of the block. Equal to `base` in the canonical form. */
  readonly address: bigint
}

export interface IpParseOptions {
  /**
   * Read what Kubernetes took before it was strict: decimal numbers with leading zeros, and IPv4-mapped IPv6 addresses,
   * which count as IPv4.
   */
  readonly sloppy?: boolean
  /** Of these only the second, as Go's own parsers do. */
  readonly mapped?: boolean
}

/** Nothing when the text is no address. */
export function parseIp(text: string, options: IpParseOptions = {}): Ip | undefined {
  if (!text.includes(':')) return wrap(4, parseIpv4(text, options))
  const value = parseIpv6(text, options)
  if (value === undefined || value >> 32n !== MAPPED) return wrap(6, value)
  return options.sloppy || options.mapped ? { family: 4, value: value & 0xffffffffn } : undefined
}

/** The first 96 bits of an IPv4-mapped address. */
const MAPPED = 0xffffn

function wrap(family: 4 | 6, value: bigint | undefined): Ip | undefined {
  return value === undefined ? undefined : { family, value }
}

function parseIpv4(text: string, { sloppy = false }: IpParseOptions): bigint | undefined {
  const value = parseDotted(text, sloppy)
  return value === undefined ? undefined : BigInt(value)
}

function parseIpv6(text: string, options: IpParseOptions): bigint | undefined {
  const groups = expandTail(text, options)
  if (groups === undefined) return undefined
  const halves = groups.split('::')
  if (halves.length > 2) return undefined
  const [left, right] = halves.map((half) => (half === '' ? [] : half.split(':'))) as [string[], string[] | undefined]
  const given = left.length + (right?.length ?? 0)
  // Two colons stand for one group of zeros at least.
  if (right ? given > 7 : given !== 8) return undefined
  const all = [...left, ...Array<string>(8 - given).fill('0'), ...(right ?? [])]
  if (!all.every((group) => /^[\da-f]{1,4}$/i.test(group))) return undefined
  return all.reduce((value, group) => value * 65536n + BigInt(`0x${group}`), 0n)
}

/** The address with a dotted end (`::ffff:1.2.3.4`) written as two groups. */
function expandTail(text: string, options: IpParseOptions): string | undefined {
  const start = text.lastIndexOf(':') + 1
  const tail = text.slice(start)
  if (!tail.includes('.')) return text
  const value = parseIpv4(tail, options)
  if (value === undefined) return undefined
  return `${text.slice(0, start)}${(value >> 16n).toString(16)}:${(value & 0xffffn).toString(16)}`
}

export function formatIp({ family, value }: Ip): string {
  if (family === 4) return [24n, 16n, 8n, 0n].map((shift) => (value >> shift) & 0xffn).join('.')
  if (value >> 32n === MAPPED) return `::ffff:${formatIp({ family: 4, value: value & 0xffffffffn })}`
  const groups = Array.from({ length: 8 }, (_, index) => (value >> BigInt(112 - 16 * index)) & 0xffffn)
  const { start, length } = longestZeroRun(groups)
  const text = (part: readonly bigint[]): string => part.map((group) => group.toString(16)).join(':')
  return length < 2 ? text(groups) : `${text(groups.slice(0, start))}::${text(groups.slice(start + length))}`
}

/** The first of the longest. */
function longestZeroRun(groups: readonly bigint[]): { start: number; length: number } {
  let best = { start: 0, length: 0 }
  let start = 0
  for (const [index, group] of groups.entries()) {
    if (group !== 0n) start = index + 1
    else if (index + 1 - start > best.length) best = { start, length: index + 1 - start }
  }
  return best
}

/** Nothing when the text is no block. Bits behind the prefix may be set: compare `address` with `base` to refuse that. */
export function parseCidr(text: string, options: IpParseOptions = {}): Cidr | undefined {
  const slash = text.indexOf('/')
  const ip = slash < 0 ? undefined : parseIp(text.slice(0, slash), options)
  const digits = text.slice(slash + 1)
  const isLoose = options.sloppy || options.mapped
  if (!ip || !(isLoose ? /^\d{1,4}$/ : /^(?:0|[1-9]\d{0,2})$/).test(digits)) return undefined
  // A sloppily written ::ffff:1.2.3.4/120 is 1.2.3.4/24.
  const mapped = ip.family === 4 && text.includes(':') ? 96 : 0
  const prefixLength = Number(digits) - mapped
  if (prefixLength < 0 || prefixLength > bitsOf(ip.family)) return undefined
  return cidrOf(ip, prefixLength)
}

/** The block of `prefixLength` that holds the address. */
export function cidrOf(ip: Ip, prefixLength: number): Cidr {
  const shift = BigInt(bitsOf(ip.family) - prefixLength)
  return { family: ip.family, base: (ip.value >> shift) << shift, prefixLength, address: ip.value }
}

/** With its first address, whatever address it was written with. */
export function formatCidr({ family, base, prefixLength }: Cidr): string {
  return `${formatIp({ family, value: base })}/${prefixLength}`
}

export function bitsOf(family: 4 | 6): 32 | 128 {
  return family === 4 ? 32 : 128
}

/** `10.0.0.0/24` and 1 is 10.0.0.1. Does not check the size of the range. */
export function nthAddress({ family, base }: Cidr, n: number): string {
  return formatIp({ family, value: base + BigInt(n) })
}

/** How many addresses the block has, the first and the last included. */
export function cidrSize({ family, prefixLength }: Cidr): bigint {
  return 1n << BigInt(bitsOf(family) - prefixLength)
}

export function contains(cidr: Cidr, ip: Ip): boolean {
  return ip.family === cidr.family && ip.value >= cidr.base && ip.value < cidr.base + cidrSize(cidr)
}

/** Blocks that overlap are the same, or one is inside of the other. */
export function overlaps(one: Cidr, other: Cidr): boolean {
  if (one.family !== other.family) return false
  return one.base < other.base + cidrSize(other) && other.base < one.base + cidrSize(one)
}
