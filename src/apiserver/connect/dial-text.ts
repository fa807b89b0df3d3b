/** Why another server could not be reached, in the words people know from upstream: those of Go's network library. */
import { HttpError } from '#lib/http/dial.ts'
import { StatusError } from '#meta/status.ts'

const UNKNOWN_AUTHORITY = 'tls: failed to verify certificate: x509: certificate signed by unknown authority'

const TEXTS: ReadonlyMap<string, (address: string) => string> = new Map<string, (address: string) => string>([
  ['ECONNREFUSED', (address) => `dial tcp ${address}: connect: connection refused`],
  ['EHOSTUNREACH', (address) => `dial tcp ${address}: connect: no route to host`],
  ['ENETUNREACH', (address) => `dial tcp ${address}: connect: network is unreachable`],
  ['ETIMEDOUT', (address) => `dial tcp ${address}: connect: connection timed out`],
  ['ENOTFOUND', (address) => `dial tcp: lookup ${address.replace(/:\d+$/, '')}: no such host`],
  ['ERR_SSL_WRONG_VERSION_NUMBER', () => 'tls: first record does not look like a TLS handshake'],
  ['ECONNRESET', () => 'read: connection reset by peer'],
  ['DEPTH_ZERO_SELF_SIGNED_CERT', () => UNKNOWN_AUTHORITY],
  ['SELF_SIGNED_CERT_IN_CHAIN', () => UNKNOWN_AUTHORITY],
  ['UNABLE_TO_GET_ISSUER_CERT_LOCALLY', () => UNKNOWN_AUTHORITY],
  ['UNABLE_TO_VERIFY_LEAF_SIGNATURE', () => UNKNOWN_AUTHORITY],
  ['CERT_HAS_EXPIRED', () => 'tls: failed to verify certificate: x509: certificate has expired or is not yet valid'],
])

/** `address` is host and port. */
export function dialText(error: unknown, address: string): string {
  for (let at = error; at instanceof Error; at = at.cause) {
    if (at instanceof StatusError) return at.message
    const text = TEXTS.get((at as NodeJS.ErrnoException).code ?? '')
    if (text !== undefined) return text(address)
  }
  if (error instanceof HttpError && error.code === 'timeout') return `dial tcp ${address}: i/o timeout`
  return error instanceof Error ? error.message : String(error)
}
