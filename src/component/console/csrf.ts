/**
 * Protects cookies against cross-site requests. A write with a cookie must come from the same origin and have the
 * header `X-HK`, which other sites cannot set. An upgrade with a cookie must come from the same origin.
 */
import type { Exchange } from '#lib/http/exchange.ts'

/** Of the pages of the server, as browsers see it: behind a proxy that ends TLS it is `https` too. */
export type PageScheme = 'http' | 'https'

export type BrowserRequest = Pick<Exchange, 'method' | 'headers' | 'authority' | 'upgradeProtocol'>

const READS: ReadonlySet<string> = new Set(['GET', 'HEAD', 'OPTIONS'])

/** The reason why the cookie of a request must not be used; undefined if it may. */
export function cookieProblem(request: BrowserRequest, scheme: PageScheme): string | undefined {
  const { method, headers, upgradeProtocol } = request
  if (upgradeProtocol !== undefined) {
    if (isSent(headers['sec-fetch-site']) && headers['sec-fetch-site'] !== 'same-origin') return FOREIGN
    return isOwnOrigin(request, scheme) ? undefined : FOREIGN
  }
  if (READS.has(method)) return undefined
  if (isSent(headers['sec-fetch-site']) ? headers['sec-fetch-site'] !== 'same-origin' : !isOwnOrigin(request, scheme)) {
    return FOREIGN
  }
  return headers['x-hk'] === '1' ? undefined : 'A request with a cookie needs the header "X-HK: 1"'
}

/**
 * Whether a browser sent the request for a page of another origin. False for clients that are no browsers: they send
 * neither header.
 */
export function isFromOtherOrigin(request: BrowserRequest, scheme: PageScheme): boolean {
  const { 'sec-fetch-site': site, origin } = request.headers
  if (isSent(site)) return site !== 'same-origin' && site !== 'none'
  return isSent(origin) && !isOwnOrigin(request, scheme)
}

const FOREIGN = 'A request with a cookie must come from a page of this server'

function isSent(header: string | readonly string[] | undefined): boolean {
  return header !== undefined
}

function isOwnOrigin({ headers: { origin }, authority }: BrowserRequest, scheme: PageScheme): boolean {
  if (origin === undefined || authority === '' || !ORIGIN[scheme].test(origin)) return false
  const [sent, own] = [URL.parse(origin), URL.parse(`${scheme}://${authority}`)]
  return sent !== null && own !== null && sent.host === own.host && own.pathname === '/' && own.username === ''
}

const ORIGIN: Readonly<Record<PageScheme, RegExp>> = {
  http: /^http:\/\/[^/?#@\\\s,]+$/i,
  https: /^https:\/\/[^/?#@\\\s,]+$/i,
}
