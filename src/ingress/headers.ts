/** Rewrites request and response headers of the proxy as ingress-nginx does. Pure. */
import type { IncomingHttpHeaders } from 'node:http'

import type { Exchange, HeaderList } from '#lib/http/exchange.ts'
import { HOP_BY_HOP } from '#lib/http/hop-by-hop.ts'

export type Headers = Record<string, string | readonly string[]>

/** Headers about the original client, accepted only from trusted clients. */
const FORWARDED = /^(?:x-forwarded-(?:for|host|port|proto|scheme)|x-real-ip|x-scheme|x-original-forwarded-for)$/
/** Handled by our server, or part of an upgrade that it does not support. */
const OURS: ReadonlySet<string> = new Set(['expect', 'http2-settings', 'host'])

/**
 * Header names that nginx accepts. Many programs read `X_Forwarded_For` as `X-Forwarded-For`, so the first form would
 * bypass the trust check.
 */
const ORDINARY = /^[a-z0-9-]+$/
const WITH_UNDERSCORES = /^[a-z0-9_-]+$/

export interface ForwardingOptions {
  readonly port: number
  readonly trustsForwarded: boolean
  /** `enable-underscores-in-headers`. */
  readonly keepsUnderscores: boolean
  /** Used if the client sent no request ID. */
  readonly requestId: string
}

export function requestHeaders(
  exchange: Pick<Exchange, 'headers' | 'authority' | 'peer'>,
  { port, trustsForwarded, keepsUnderscores, requestId }: ForwardingOptions,
): Headers {
  const { headers } = exchange
  const named = connectionNames(headers)
  const out: Headers = {}
  for (const [name, value] of Object.entries(headers)) {
    if (value === undefined || HOP_BY_HOP.has(name) || named.has(name)) continue
    if (!(keepsUnderscores ? WITH_UNDERSCORES : ORDINARY).test(name)) continue
    if (!OURS.has(name) && !FORWARDED.test(name.replaceAll('_', '-'))) out[name] = value
  }
  return {
    ...out,
    'x-request-id': [headers['x-request-id'] ?? requestId].flat()[0] ?? requestId,
    ...forwarded(exchange, trustsForwarded, port),
  }
}

/** The client's address, host and protocol: from a trusted client, or as observed. */
function forwarded(
  { headers, authority, peer }: Pick<Exchange, 'headers' | 'authority' | 'peer'>,
  trusts: boolean,
  port: number,
): Headers {
  const before = (name: string): string => (trusts ? [headers[name] ?? ''].flat().join(', ') : '')
  const scheme = before('x-forwarded-proto') || (peer.isEncrypted ? 'https' : 'http')
  const chain = before('x-forwarded-for')
  return {
    host: authority,
    'x-real-ip': chain.split(',')[0]?.trim() || peer.address,
    'x-forwarded-for': chain === '' ? peer.address : `${chain}, ${peer.address}`,
    'x-forwarded-host': before('x-forwarded-host') || authority,
    'x-forwarded-port': before('x-forwarded-port') || String(port),
    'x-forwarded-proto': scheme,
    'x-forwarded-scheme': scheme,
    'x-scheme': scheme,
  }
}

export function upgradeHeaders(
  exchange: Pick<Exchange, 'headers' | 'authority' | 'peer'>,
  passing: ForwardingOptions,
): Headers {
  const { upgrade = '' } = exchange.headers
  return { ...requestHeaders(exchange, passing), connection: 'Upgrade', upgrade }
}

export function responseHeaders(headers: IncomingHttpHeaders): HeaderList {
  const named = connectionNames(headers)
  const out: string[] = []
  for (const [name, value] of Object.entries(headers)) {
    if (value === undefined || name.startsWith(':') || HOP_BY_HOP.has(name) || named.has(name) || name === 'date')
      continue
    for (const one of [value].flat()) out.push(canonicalName(name), one)
  }
  return out
}

/** The response of a server that switches protocols. */
export function switching(headers: IncomingHttpHeaders): string {
  const lines = Object.entries(headers).flatMap(([name, value]) =>
    [value ?? []].flat().map((one) => `${canonicalName(name)}: ${one}`),
  )
  return `${['HTTP/1.1 101 Switching Protocols', ...lines].join('\r\n')}\r\n\r\n`
}

/** Headers that `Connection` declares as hop-by-hop. */
function connectionNames({ connection = '' }: IncomingHttpHeaders): ReadonlySet<string> {
  return new Set(connection.split(',').map((name) => name.trim().toLowerCase()))
}

function canonicalName(name: string): string {
  return name.replaceAll(/(?:^|-)[a-z]/g, (letter) => letter.toUpperCase())
}
