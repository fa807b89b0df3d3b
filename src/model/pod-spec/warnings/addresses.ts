/** Warns about IP addresses of a pod in a deprecated notation. */
import { goQuote } from '#lib/go/text.ts'
import { canonicalIp, validateLegacyIp } from '#meta/validation/addresses.ts'
import type { FieldPath } from '#meta/validation/field-path.ts'

/** For fields that accept sloppy addresses; other texts yield no warning. */
export function addressWarnings(path: FieldPath, value: string): string[] {
  const canonical = canonicalIp(value)
  if (canonical === undefined || canonical === value) return []
  if (validateLegacyIp(path, value, { strict: true }).length > 0) {
    return [`${path}: non-standard IP address ${goQuote(value)} is invalid: use ${goQuote(canonical)}`]
  }
  return [`${path}: IPv6 address ${goQuote(value)} should be in RFC 5952 canonical format (${goQuote(canonical)})`]
}
