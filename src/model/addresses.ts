/** IP addresses and blocks in objects: which may be endpoints, and which are badly written. */
import { bitsOf, formatIp, type Ip, parseCidr, parseIp } from '#lib/cidr.ts'
import { goQuote } from '#lib/go-text.ts'
import { canonicalCidr } from '#meta/validation/addresses.ts'
import { type FieldError, invalid } from '#meta/validation/field-error.ts'

interface SpecialRange {
  readonly holds: (ip: Ip) => boolean
  readonly complaint: (text: string) => string
}

function inBlocks(...blocks: readonly string[]): (ip: Ip) => boolean {
  const parsed = blocks.map((block) => parseCidr(block))
  return ({ family, value }) =>
    parsed.some((block) => {
      if (block === undefined || block.family !== family) return false
      const shift = BigInt(bitsOf(family) - block.prefixLength)
      return value >> shift === block.base >> shift
    })
}

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
    // Whatever the flags in the third digit are.
    holds: (ip) => inBlocks('224.0.0.0/24')(ip) || (ip.family === 6 && ((ip.value >> 112n) & 0xff0fn) === 0xff02n),
    complaint: () => 'may not be in the link-local multicast range (224.0.0.0/24, ff02::/10)',
  },
]

/** An address that traffic is sent to: Endpoints, EndpointSlices and, by history, external IPs of Services. */
export function validateEndpointIp(field: string, text: string): FieldError[] {
  const ip = parseIp(text, { sloppy: true })
  if (ip === undefined) return [invalid(field, text, 'must be a valid IP address', 'format=ip-sloppy')]
  return specialRanges
    .filter(({ holds }) => holds(ip))
    .map(({ complaint }) => invalid(field, text, complaint(text), 'format=endpoint-ip'))
}

/** `IPv4` or `IPv6`, leniently read; undefined when the text is no address. */
export function ipFamilyOf(text: string): 'IPv4' | 'IPv6' | undefined {
  const ip = parseIp(text, { sloppy: true })
  return ip === undefined ? undefined : `IPv${ip.family}`
}

/** Of blocks that are understood and yet not written as they should be. */
export function cidrWarnings(field: string, text: string): string[] {
  const cidr = parseCidr(text, { sloppy: true })
  const block = canonicalCidr(text)
  if (cidr === undefined || block === undefined) return []
  const warnings: string[] = []
  if (cidr.address !== cidr.base) {
    const bits = text.includes(':') ? 128 : 32
    const single = `${formatIp({ family: cidr.family, value: cidr.address })}/${bits}`
    const choice = `should be ${goQuote(block)} or ${goQuote(single)}?`
    warnings.push(`${field}: CIDR value ${goQuote(text)} is ambiguous in this context (${choice})`)
  }
  if (parseCidr(text) === undefined) {
    warnings.push(`${field}: non-standard CIDR value ${goQuote(text)} is invalid: use ${goQuote(block)}`)
  }
  if (warnings.length > 0 || cidr.family === 4 || block === text) return warnings
  return [`${field}: IPv6 CIDR value ${goQuote(text)} should be in RFC 5952 canonical format (${goQuote(block)})`]
}
