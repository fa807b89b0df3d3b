/** The CEL library of IP addresses and CIDRs. */

import { parseAddr, parsePrefix } from '#lib/go/netip.ts'
import { goQuote } from '#lib/go/text.ts'
import { cidrOf, contains, formatIp, overlaps, type Cidr, type Ip } from '#lib/net/cidr.ts'

import { estimateRead, ONE, readAndWriteFirst, readFirst, sizeAt } from '../cost/costs.ts'
import { addSpans, scaleSpan } from '../cost/span.ts'
import {
  defineLibrary,
  free,
  member,
  type ArgumentEstimate,
  type CallEstimate,
  type Cost,
  type Library,
  type Overload,
} from '../library.ts'
import { BOOL, INT, STRING, opaque } from '../type.ts'
import { Failure, NO_SUCH_OVERLOAD, OpaqueValue, type Result } from '../value.ts'
import { sizeOf, tenth } from '../values/size.ts'

const IP = opaque('net.IP')
const CIDR = opaque('net.CIDR')

class IpValue extends OpaqueValue {
  readonly typeName = 'net.IP'
  readonly ip: Ip
  constructor(ip: Ip) {
    super()
    this.ip = ip
  }
  override get size(): number {
    return this.ip.family === 4 ? 4 : 16
  }
  equals({ ip }: IpValue): boolean {
    return this.ip.family === ip.family && this.ip.value === ip.value
  }
  override toString(): string {
    return formatIp(this.ip)
  }
}

class CidrValue extends OpaqueValue {
  readonly typeName = 'net.CIDR'
  readonly cidr: Cidr
  constructor(cidr: Cidr) {
    super()
    this.cidr = cidr
  }
  /** Bytes of the prefix. */
  override get size(): number {
    return Math.ceil(this.cidr.prefixLength / 8)
  }
  get ip(): Ip {
    return { family: this.cidr.family, value: this.cidr.address }
  }
  /** With the address it was written with. */
  equals({ cidr }: CidrValue): boolean {
    const { family, address, prefixLength } = this.cidr
    return family === cidr.family && address === cidr.address && prefixLength === cidr.prefixLength
  }
  override toString(): string {
    return `${formatIp(this.ip)}/${this.cidr.prefixLength}`
  }
}

/** The first 96 bits of an IPv4 address in IPv6's clothes. */
const isMapped = ({ family, value }: Ip): boolean => family === 6 && value >> 32n === 0xffffn

function toIp(text: string): IpValue | Failure {
  const addr = parseAddr(text)
  const quoted = goQuote(text)
  if (typeof addr === 'string') {
    return new Failure(`IP Address ${quoted} parse error during conversion from string: ${addr}`)
  }
  if (addr.zone !== '') return new Failure(`IP address ${quoted} with zone value is not allowed`)
  if (isMapped(addr)) return new Failure(`IPv4-mapped IPv6 address ${quoted} is not allowed`)
  return new IpValue({ family: addr.family, value: addr.value })
}

function toCidr(text: string): CidrValue | Failure {
  const prefix = parsePrefix(text)
  const during = 'network address parse error during conversion from string:'
  if (typeof prefix === 'string') return new Failure(`${during} ${during} ${prefix}`)
  if (isMapped(prefix.addr)) {
    return new Failure(`${during} IPv4-mapped IPv6 address ${goQuote(text)} is not allowed`)
  }
  return new CidrValue(cidrOf(prefix.addr, prefix.bits))
}

function isCanonical(text: string): Result {
  const ip = toIp(text)
  return ip instanceof Failure ? ip : String(ip) === text
}

const question = (id: string, ask: (ip: Ip) => boolean): Overload[] => [
  member(id, [IP], BOOL, { evaluate: ({ ip }: IpValue) => ask(ip) }),
]

const isUnspecified = ({ value }: Ip): boolean => value === 0n
const isLoopback = ({ family, value }: Ip): boolean => (family === 4 ? value >> 24n === 127n : value === 1n)
const isMulticast = ({ family, value }: Ip): boolean => (family === 4 ? value >> 28n === 0xen : value >> 120n === 0xffn)
const isLinkLocalMulticast = ({ family, value }: Ip): boolean =>
  family === 4
    ? value >> 8n === 0xe00000n
    : (value >> 112n) % 0x10000n === (((value >> 112n) & 0xfff0n) | 2n) && value >> 120n === 0xffn
const isLinkLocalUnicast = ({ family, value }: Ip): boolean =>
  family === 4 ? value >> 16n === 0xa9fen : value >> 118n === 0x3fan
const isGlobalUnicast = (ip: Ip): boolean =>
  !(ip.family === 4 && ip.value === 0xffff_ffffn) &&
  !isUnspecified(ip) &&
  !isLoopback(ip) &&
  !isMulticast(ip) &&
  !isLinkLocalUnicast(ip)

const reading = { cost: readFirst, estimate: estimateRead }

export const ip: Library = defineLibrary(
  'kubernetes.net.ip',
  {
    ip: [free('string_to_ip', [STRING], IP, { ...reading, evaluate: toIp })],
    family: [member('ip_family', [IP], INT, { evaluate: ({ ip }: IpValue) => ip.family })],
    'ip.isCanonical': [
      free('ip_is_canonical', [STRING], BOOL, {
        evaluate: isCanonical,
        cost: readAndWriteFirst,
        estimate: (args) => ({ cost: scaleSpan(sizeAt(args, 0), 0.2) }),
      }),
    ],
    isUnspecified: question('ip_is_unspecified', isUnspecified),
    isLoopback: question('ip_is_loopback', isLoopback),
    isLinkLocalMulticast: question('ip_is_link_local_multicast', isLinkLocalMulticast),
    isLinkLocalUnicast: question('ip_is_link_local_unicast', isLinkLocalUnicast),
    isGlobalUnicast: question('ip_is_global_unicast', isGlobalUnicast),
    isIP: [free('is_ip', [STRING], BOOL, { ...reading, evaluate: (text: string) => !(toIp(text) instanceof Failure) })],
    string: [free('ip_to_string', [IP], STRING, { evaluate: String })],
  },
  { 'net.IP': IP },
)

const holdsIp = ({ cidr }: CidrValue, { ip }: IpValue): boolean => contains(cidr, ip)
const holdsCidr = ({ cidr }: CidrValue, { cidr: other }: CidrValue): boolean =>
  overlaps(cidr, other) && cidr.prefixLength <= other.prefixLength

const ipCost: Cost = (a) => tenth(2 * sizeOf(a))
const cidrCost: Cost = (a) => tenth(2 * sizeOf(a)) + tenth(sizeOf(a)) + 1
const withText =
  (cost: Cost): Cost =>
  (a, b) =>
    cost(a, b, null) + tenth(sizeOf(b))

/** Bytes of an address. */
const ADDRESS = { min: 4n, max: 16n }
const ipSpan = scaleSpan(addSpans(ADDRESS, ADDRESS), 0.1)
const cidrSpan = addSpans(ipSpan, scaleSpan(ADDRESS, 0.1), ONE)

type Arguments = readonly ArgumentEstimate[]
const estimateText =
  (span: CallEstimate['cost']) =>
  (args: Arguments): CallEstimate => ({ cost: addSpans(span, scaleSpan(sizeAt(args, 1), 0.1)) })

/** Upstream reports a malformed address as a missing overload, and a malformed block by its own error. */
function holdsIpText(cidr: CidrValue, text: string): Result {
  const address = toIp(text)
  return address instanceof Failure ? NO_SUCH_OVERLOAD : holdsIp(cidr, address)
}

function holdsCidrText(cidr: CidrValue, text: string): Result {
  const other = toCidr(text)
  return other instanceof Failure ? other : holdsCidr(cidr, other)
}

export const cidr: Library = defineLibrary(
  'kubernetes.net.cidr',
  {
    cidr: [free('string_to_cidr', [STRING], CIDR, { ...reading, evaluate: toCidr })],
    containsIP: [
      member('cidr_contains_ip_string', [CIDR, STRING], BOOL, {
        evaluate: holdsIpText,
        cost: withText(ipCost),
        dynamicCost: ipCost,
        estimate: estimateText(ipSpan),
      }),
      member('cidr_contains_ip_ip', [CIDR, IP], BOOL, {
        evaluate: holdsIp,
        cost: ipCost,
        estimate: () => ({ cost: ipSpan }),
      }),
    ],
    containsCIDR: [
      member('cidr_contains_cidr_string', [CIDR, STRING], BOOL, {
        evaluate: holdsCidrText,
        cost: withText(cidrCost),
        dynamicCost: cidrCost,
        estimate: estimateText(cidrSpan),
      }),
      member('cidr_contains_cidr', [CIDR, CIDR], BOOL, {
        evaluate: holdsCidr,
        cost: cidrCost,
        estimate: () => ({ cost: cidrSpan }),
      }),
    ],
    ip: [member('cidr_ip', [CIDR], IP, { evaluate: ({ ip }: CidrValue) => new IpValue(ip) })],
    prefixLength: [member('cidr_prefix_length', [CIDR], INT, { evaluate: ({ cidr }: CidrValue) => cidr.prefixLength })],
    masked: [
      member('cidr_masked', [CIDR], CIDR, {
        evaluate: ({ cidr }: CidrValue) => new CidrValue({ ...cidr, address: cidr.base }),
      }),
    ],
    isCIDR: [
      free('is_cidr', [STRING], BOOL, { ...reading, evaluate: (text: string) => !(toCidr(text) instanceof Failure) }),
    ],
    string: [free('cidr_to_string', [CIDR], STRING, { evaluate: String })],
  },
  { 'net.CIDR': CIDR },
)
