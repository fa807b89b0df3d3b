/** Headers of proxied requests and responses, without hop-by-hop headers and without the client's credentials. */
import type { IncomingHttpHeaders } from 'node:http'

import { TOKEN_PROTOCOL } from '#auth/credentials/protocol-token.ts'
import { CAUSES_HEADER } from '#lib/causes.ts'
import type { Exchange, HeaderList } from '#lib/http/exchange.ts'
import { HOP_BY_HOP } from '#lib/http/hop-by-hop.ts'

/** This server answers `expect` itself; `http2-settings` belongs to an upgrade that it does not support. */
const OURS: ReadonlySet<string> = new Set(['authorization', 'expect', 'http2-settings', 'host', 'x-forwarded-for'])

/**
 * User headers of front proxies and impersonation, which only this server may evaluate. Some servers take `_` for `-`.
 */
const IDENTITY = /^(?:x[-_]remote[-_]|impersonate[-_])/

/** Causes name objects of this cluster, which the owner of a backend may not see. */
export function isWithheldFromBackends(name: string): boolean {
  return name === CAUSES_HEADER
}

export type RequestHeaders = Record<string, string | readonly string[]>

/** The headers of the client's request to forward, without those for which `isWithheld` returns true. */
export function requestHeaders(
  exchange: Pick<Exchange, 'headers' | 'authority' | 'peer'>,
  isWithheld?: (name: string) => boolean,
): RequestHeaders {
  const { headers, authority, peer } = exchange
  const named = connectionNames(headers)
  const out: RequestHeaders = authority === '' ? {} : { host: authority }
  for (const name of Object.keys(headers)) {
    const value = headers[name]
    const isLocal = name.startsWith(':') || HOP_BY_HOP.has(name) || named.has(name) || OURS.has(name)
    if (value !== undefined && !isLocal && !IDENTITY.test(name) && isWithheld?.(name) !== true) out[name] = value
  }
  withoutToken(out)
  const chain = isWithheld?.('x-forwarded-for') === true ? '' : forwardedFor(headers['x-forwarded-for'], peer.address)
  if (chain !== '') out['x-forwarded-for'] = chain
  return out
}

/** Like Go: the whole chain in one header, the nearest last. No address for requests without a network. */
function forwardedFor(before: string | readonly string[] | undefined, address: string): string {
  if (before === undefined) return address
  return [before, address]
    .flat()
    .filter((one) => one !== '')
    .join(', ')
}

/** The headers of an upgrade request to forward. */
export function upgradeHeaders(
  exchange: Pick<Exchange, 'headers' | 'authority' | 'peer'>,
  isWithheld?: (name: string) => boolean,
): RequestHeaders {
  const { upgrade = '' } = exchange.headers
  return { ...requestHeaders(exchange, isWithheld), connection: 'Upgrade', upgrade }
}

/** The token of the client may be in a subprotocol, in requests without an upgrade too. */
function withoutToken(headers: RequestHeaders): void {
  const offered = headers['sec-websocket-protocol']
  if (offered === undefined) return
  const all = [offered].flat().join(',').split(',')
  const kept = all.filter((name) => !name.trim().startsWith(TOKEN_PROTOCOL))
  if (kept.length > 0) headers['sec-websocket-protocol'] = kept.join(',').trim()
  else delete headers['sec-websocket-protocol']
}

/** CORS headers of backends must not open this server's pages to other origins. */
const CORS = /^access-control-allow-(?:credentials|headers|methods|origin)$/

/** The headers of the response to forward, as a list. `dropped` names additional headers to omit. */
export function responseHeaders(headers: IncomingHttpHeaders, dropped: readonly string[] = []): HeaderList {
  const named = connectionNames(headers)
  const out: string[] = []
  for (const name of Object.keys(headers)) {
    const value = headers[name]
    const isLocal = name.startsWith(':') || HOP_BY_HOP.has(name) || named.has(name) || name === 'date'
    if (value === undefined || isLocal || CORS.test(name) || dropped.includes(name)) continue
    if (typeof value === 'string') out.push(canonicalName(name), value)
    else for (const one of value) out.push(canonicalName(name), one)
  }
  return out
}

const NO_NAMES: ReadonlySet<string> = new Set()

/** The hop-by-hop headers that `Connection` lists. */
function connectionNames({ connection }: IncomingHttpHeaders): ReadonlySet<string> {
  if (connection === undefined) return NO_NAMES
  return new Set(connection.split(',').map((name) => name.trim().toLowerCase()))
}

/** Peers choose names freely; the common ones fit. */
const MAX_NAMES = 500
const canonicalNames = new Map<string, string>()

/** `content-type` as `Content-Type`: names arrive in lower case, and people read them. */
export function canonicalName(name: string): string {
  const known = canonicalNames.get(name)
  if (known !== undefined) return known
  const canonical = name.replaceAll(/(?:^|-)[a-z]/g, (letter) => letter.toUpperCase())
  if (canonicalNames.size < MAX_NAMES) canonicalNames.set(name, canonical)
  return canonical
}

/** All headers as a list. */
export function headerList(headers: IncomingHttpHeaders): HeaderList {
  return Object.entries(headers).flatMap(([name, value]) =>
    [value ?? []].flat().flatMap((one) => [canonicalName(name), one]),
  )
}

/** The head of the response that accepts an upgrade, with the headers of the backend's response. */
export function switchingProtocols(headers: IncomingHttpHeaders): string {
  const list = headerList(headers)
  const lines = list.flatMap((name, at) => (at % 2 === 0 ? `${name}: ${list[at + 1]}` : []))
  return `${['HTTP/1.1 101 Switching Protocols', ...lines].join('\r\n')}\r\n\r\n`
}
