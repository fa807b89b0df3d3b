/** Parses and formats reverse names, `4.3.2.1.in-addr.arpa` and `ip6.arpa` (RFC 1035, RFC 3596). Pure. */
import { formatIp } from '#lib/net/cidr.ts'

export const REVERSE_ZONES = ['in-addr.arpa', 'ip6.arpa'] as const

/** The address of a lower-case reverse name; undefined if it is none. */
export function addressOf(name: string): string | undefined {
  if (name.endsWith('.in-addr.arpa')) return ipv4Of(name.slice(0, -'.in-addr.arpa'.length).split('.'))
  if (name.endsWith('.ip6.arpa')) return ipv6Of(name.slice(0, -'.ip6.arpa'.length).split('.'))
  return undefined
}

function ipv4Of(parts: readonly string[]): string | undefined {
  const isWhole = parts.length === 4 && parts.every((part) => /^(?:0|[1-9]\d{0,2})$/.test(part) && Number(part) < 256)
  return isWhole ? parts.toReversed().join('.') : undefined
}

function ipv6Of(digits: readonly string[]): string | undefined {
  if (digits.length !== 32 || !digits.every((digit) => /^[0-9a-f]$/.test(digit))) return undefined
  return formatIp({ family: 6, value: BigInt(`0x${digits.toReversed().join('')}`) })
}
