/** Validates IP addresses and CIDRs in objects, and returns warnings for deprecated notations. */

import { goQuote } from '#lib/go/text.ts'
import { bitsOf, type Cidr, formatIp, type Ip, parseCidr, parseIp } from '#lib/net/cidr.ts'
import { canonicalCidr } from '#meta/validation/addresses.ts'
import type { FieldError, FieldPath } from '#meta/validation/field-path.ts'

interface SpecialRange {
  readonly holds: (ip: Ip) => boolean
  readonly complaint: (text: string) => string
}

function inBlocks(...blocks: readonly string[]): (ip: Ip) => boolean {
  const prefixes = blocks.map((block) => {
    const { family, base, prefixLength } = parseCidr(block) as Cidr
    const shift = BigInt(bitsOf(family) - prefixLength)
    return { family, shift, prefix: base >> shift }
  })
  return (ip) => prefixes.some(({ family, shift, prefix }) => family === ip.family && ip.value >> shift === prefix)
}

const isLinkLocalMulticast = inBlocks('224.0.0.0/24')

const specialRanges: readonly SpecialRange[] = [
  { holds: ({ value }) => value === 0n, complaint: (text) => `may not be unspecified (${text})` },
  {
    holds: inBlocks('127.0.0.0/8', '::1/128'),
    complaint: () => 'may not be in the loopback range (127.0.0.0/8, ::1/128)',
  },
  {
    holds: inBlocks('169.254.0.0/16', 'fe80::/10'),
    complaint: () => 'may not be in the link-local range (169.254.0.0/16, fe80::/10)',
  },
  {
    // The third digit has flags, which may have any value.
    holds: (ip) => isLinkLocalMulticast(ip) || (ip.family === 6 && ((ip.value >> 112n) & 0xff0fn) === 0xff02n),
    complaint: () => 'may not be in the link-local multicast range (224.0.0.0/24, ff02::/10)',
  },
]

/**
 * An address that receives traffic: Endpoints, EndpointSlices and, for historical reasons, external IPs of Services.
 */
export function validateEndpointIp(path: FieldPath, text: string): FieldError[] {
  const ip = parseIp(text, { sloppy: true })
  if (ip === undefined) return [path.invalid(text, 'must be a valid IP address', 'format=ip-sloppy')]
  return specialRanges
    .filter(({ holds }) => holds(ip))
    .map(({ complaint }) => path.invalid(text, complaint(text), 'format=endpoint-ip'))
}

/** `IPv4` or `IPv6`, parsed leniently; undefined for other texts. */
export function ipFamilyOf(text: string): 'IPv4' | 'IPv6' | undefined {
  const ip = parseIp(text, { sloppy: true })
  return ip === undefined ? undefined : `IPv${ip.family}`
}

/** Warnings about valid CIDRs in bad notation. */
export function cidrWarnings(path: FieldPath, text: string): string[] {
  const cidr = parseCidr(text, { sloppy: true })
  const block = canonicalCidr(text)
  if (cidr === undefined || block === undefined) return []
  const warnings: string[] = []
  if (cidr.address !== cidr.base) {
    const bits = text.includes(':') ? 128 : 32
    const single = `${formatIp({ family: cidr.family, value: cidr.address })}/${bits}`
    const choice = `should be ${goQuote(block)} or ${goQuote(single)}?`
    warnings.push(`${path}: CIDR value ${goQuote(text)} is ambiguous in this context (${choice})`)
  }
  if (parseCidr(text) === undefined) {
    warnings.push(`${path}: non-standard CIDR value ${goQuote(text)} is invalid: use ${goQuote(block)}`)
  }
  if (warnings.length > 0 || cidr.family === 4 || block === text) return warnings
  return [`${path}: IPv6 CIDR value ${goQuote(text)} should be in RFC 5952 canonical format (${goQuote(block)})`]
}
