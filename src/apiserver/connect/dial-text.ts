/** Formats connection errors like Go's net package, because users know upstream's texts. */
import { isIP } from 'node:net'

import { HttpError } from '#lib/http/http-error.ts'
import { StatusError } from '#meta/status.ts'

import { hostPort } from './kubelet-location.ts'

const UNVERIFIED = 'tls: failed to verify certificate: x509: '
const UNKNOWN_AUTHORITY = `${UNVERIFIED}certificate signed by unknown authority`

type Text = (address: string, error: Error) => string

const TEXTS: ReadonlyMap<string, Text> = new Map<string, Text>([
  ['ECONNREFUSED', (address) => `dial tcp ${address}: connect: connection refused`],
  ['EHOSTUNREACH', (address) => `dial tcp ${address}: connect: no route to host`],
  ['ENETUNREACH', (address) => `dial tcp ${address}: connect: network is unreachable`],
  ['ETIMEDOUT', (address) => `dial tcp ${address}: connect: connection timed out`],
  ['ENOTFOUND', (address) => `dial tcp: lookup ${address.replace(/:\d+$/, '')}: no such host`],
  ['ERR_SSL_WRONG_VERSION_NUMBER', () => 'tls: first record does not look like a TLS handshake'],
  ['ERR_SSL_PACKET_LENGTH_TOO_LONG', () => 'tls: first record does not look like a TLS handshake'],
  // The peer closed the connection regularly, which Go distinguishes from a reset.
  ['ECONNRESET', (_, { message }) => (message === 'socket hang up' ? 'EOF' : 'read: connection reset by peer')],
  ['DEPTH_ZERO_SELF_SIGNED_CERT', () => UNKNOWN_AUTHORITY],
  ['SELF_SIGNED_CERT_IN_CHAIN', () => UNKNOWN_AUTHORITY],
  ['UNABLE_TO_GET_ISSUER_CERT_LOCALLY', () => UNKNOWN_AUTHORITY],
  ['UNABLE_TO_VERIFY_LEAF_SIGNATURE', () => UNKNOWN_AUTHORITY],
  ['CERT_HAS_EXPIRED', () => `${UNVERIFIED}certificate has expired or is not yet valid`],
  ['CERT_NOT_YET_VALID', () => `${UNVERIFIED}certificate has expired or is not yet valid`],
  ['ERR_TLS_CERT_ALTNAME_INVALID', (_, error) => UNVERIFIED + nameText(error as NameError)],
])

/** A certificate for another name, as reported by node:tls. */
interface NameError extends Error {
  readonly host: string
  readonly cert: { readonly subjectaltname?: string; readonly subject?: { readonly CN?: string | string[] } }
}

function nameText({ host, cert: { subjectaltname, subject } }: NameError): string {
  if (subjectaltname === undefined && [subject?.CN].flat().includes(host)) {
    return 'certificate relies on legacy Common Name field, use SANs instead'
  }
  const names = (subjectaltname ?? '').split(', ')
  const valid = (prefix: string): string =>
    names.flatMap((name) => (name.startsWith(prefix) ? [name.slice(prefix.length)] : [])).join(', ')
  const isAddress = isIP(host) !== 0
  const found = valid(isAddress ? 'IP Address:' : 'DNS:')
  if (found !== '') return `certificate is valid for ${found}, not ${host}`
  return isAddress
    ? `cannot validate certificate for ${host} because it doesn't contain any IP SANs`
    : `certificate is not valid for any names, but wanted to match ${host}`
}

interface DialError extends NodeJS.ErrnoException {
  readonly address?: string
  readonly port?: number
}

/** `address` is host and port. If Node reports the resolved address, the text contains that instead. */
export function dialText(error: unknown, address: string): string {
  for (let at = error; at instanceof Error; at = at.cause) {
    if (at instanceof StatusError) return at.message
    const found = at instanceof AggregateError ? (at.errors[0] as Error) : at
    const { code = '', address: host, port } = found as DialError
    const text = TEXTS.get(code)
    if (text === undefined) continue
    const isKnown = host === undefined || port === undefined || isIP(address.replace(/^\[?(.*?)\]?:\d+$/, '$1')) > 0
    return text(isKnown ? address : hostPort(host, port), found)
  }
  if (error instanceof HttpError && error.code === 'timeout') return `dial tcp ${address}: i/o timeout`
  return error instanceof Error ? error.message : String(error)
}
