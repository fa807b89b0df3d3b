/** Addresses that are understood and yet not written as they should be. */
import { goQuote } from '#lib/go-text.ts'
import { canonicalIp, validateLegacyIp } from '#meta/validation/addresses.ts'

/** For fields that take sloppy addresses; nothing about text that is no address. */
export function addressWarnings(field: string, value: string): string[] {
  const canonical = canonicalIp(value)
  if (canonical === undefined || canonical === value) return []
  if (validateLegacyIp(field, value, { strict: true }).length > 0) {
    return [`${field}: non-standard IP address ${goQuote(value)} is invalid: use ${goQuote(canonical)}`]
  }
  return [`${field}: IPv6 address ${goQuote(value)} should be in RFC 5952 canonical format (${goQuote(canonical)})`]
}
