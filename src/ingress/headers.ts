/** Headers of requests and answers that are passed on, as ingress-nginx passes them. Pure. */
import type { IncomingHttpHeaders } from 'node:http'

import type { Exchange, HeaderList } from '#lib/http/exchange.ts'
import { HOP_BY_HOP } from '#lib/http/hop-by-hop.ts'

export type Headers = Record<string, string | readonly string[]>

/** What says for whom a request is, which only those may say who are believed. */
const FORWARDED = /^(?:x-forwarded-(?:for|host|port|proto|scheme)|x-real-ip|x-scheme|x-original-forwarded-for)$/
/** Answered by our own server, or of an upgrade that it does not make. */
const OURS: ReadonlySet<string> = new Set(['expect', 'http2-settings', 'host'])

/**
 * Names as nginx takes them. Many programs read `X_Forwarded_For` as `X-Forwarded-For`: whoever sends the first form must not be
 * believed for it.
 */
const ORDINARY = /^[a-z0-9-]+$/
const WITH_UNDERSCORES = /^[a-z0-9_-]+$/

export interface Passing {
  readonly port: number
  readonly trustsForwarded: boolean
  /** `enable-underscores-in-headers`. */
  readonly keepsUnderscores: boolean
  /** Of the request, where the client gave none. */
  readonly requestId: string
}

export function requestHeaders(
  exchange: Pick<Exchange, 'headers' | 'authority' | 'peer'>,
  { port, trustsForwarded, keepsUnderscores, requestId }: Passing,
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

/** Who asks, for what and by which way: as whoever is believed says it, or as it is seen here. */
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

export function upgradeHeaders(exchange: Pick<Exchange, 'headers' | 'authority' | 'peer'>, passing: Passing): Headers {
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

/** The answer of a server that agrees to go on in another protocol. */
export function switching(headers: IncomingHttpHeaders): string {
  const lines = Object.entries(headers).flatMap(([name, value]) =>
    [value ?? []].flat().map((one) => `${canonicalName(name)}: ${one}`),
  )
  return `${['HTTP/1.1 101 Switching Protocols', ...lines].join('\r\n')}\r\n\r\n`
}

/** Headers that `Connection` declares to be about this connection only. */
function connectionNames({ connection = '' }: IncomingHttpHeaders): ReadonlySet<string> {
  return new Set(connection.split(',').map((name) => name.trim().toLowerCase()))
}

function canonicalName(name: string): string {
  return name.replaceAll(/(?:^|-)[a-z]/g, (letter) => letter.toUpperCase())
}
