/**
 * Headers of a request or an answer that is passed on: what concerns one connection only stays behind, and so does what
 * proves who the client is, because that was meant for us.
 */
import type { IncomingHttpHeaders } from 'node:http'

import type { Exchange, HeaderList } from '#lib/http/exchange.ts'
import { HOP_BY_HOP } from '#lib/http/hop-by-hop.ts'

import { TOKEN_PROTOCOL } from '../credentials/protocol-token.ts'

/** `expect` is answered by our own server; `http2-settings` belongs to an upgrade we do not make. */
const OURS: ReadonlySet<string> = new Set(['authorization', 'expect', 'http2-settings', 'host', 'x-forwarded-for'])

/** Names of the front proxy and of impersonation: they say who the user is, and only we know who may say that. */
const IDENTITY = /^(?:x-remote-|impersonate-)/

export type RequestHeaders = Record<string, string | readonly string[]>

/** Those of the client's request that go on to another server. */
export function requestHeaders(exchange: Pick<Exchange, 'headers' | 'authority' | 'peer'>): RequestHeaders {
  const { headers, authority, peer } = exchange
  const named = connectionNames(headers)
  const out: RequestHeaders = authority === '' ? {} : { host: authority }
  for (const [name, value] of Object.entries(headers)) {
    const isKept = !name.startsWith(':') && !HOP_BY_HOP.has(name) && !named.has(name) && !OURS.has(name)
    if (value !== undefined && isKept && !IDENTITY.test(name)) out[name] = value
  }
  // As Go does it: the whole chain in one header, the nearest last. No address for what did not come over a network.
  const chain = [headers['x-forwarded-for'] ?? [], peer.address].flat().filter((address) => address !== '')
  if (chain.length > 0) out['x-forwarded-for'] = chain.join(', ')
  return out
}

/** The same for a request that goes on in another protocol. */
export function upgradeHeaders(exchange: Pick<Exchange, 'headers' | 'authority' | 'peer'>): RequestHeaders {
  const { upgrade = '' } = exchange.headers
  const out: RequestHeaders = { ...requestHeaders(exchange), connection: 'Upgrade', upgrade }
  const offered = exchange.headers['sec-websocket-protocol']
  if (offered === undefined) return out
  const kept = offered.split(',').filter((name) => !name.trim().startsWith(TOKEN_PROTOCOL))
  return { ...out, 'sec-websocket-protocol': kept.join(',').trim() }
}

/** Other servers' rules for browsers are not ours: pages of ours must not become readable by theirs. */
const CORS = /^access-control-allow-(?:credentials|headers|methods|origin)$/

/** Those of another server's answer that go on to the client, as a list; `dropped` besides those that never do. */
export function responseHeaders(headers: IncomingHttpHeaders, dropped: readonly string[] = []): HeaderList {
  const named = connectionNames(headers)
  const out: string[] = []
  for (const [name, value] of Object.entries(headers)) {
    const isLocal = name.startsWith(':') || HOP_BY_HOP.has(name) || named.has(name) || name === 'date'
    if (value === undefined || isLocal || CORS.test(name) || dropped.includes(name)) continue
    for (const one of typeof value === 'string' ? [value] : value) out.push(canonicalName(name), one)
  }
  return out
}

/** Headers that `Connection` declares to be about this connection only. */
function connectionNames({ connection = '' }: IncomingHttpHeaders): ReadonlySet<string> {
  return new Set(connection.split(',').map((name) => name.trim().toLowerCase()))
}

/** `content-type` as `Content-Type`: names arrive in lower case, and people read them. */
export function canonicalName(name: string): string {
  return name.replaceAll(/(?:^|-)[a-z]/g, (letter) => letter.toUpperCase())
}
