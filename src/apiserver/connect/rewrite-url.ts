/**
 * Links of a proxied page. A server behind the proxy does not know under which path clients see it: what it calls
 * `/login` is `/api/v1/…/proxy/login` to them. Relative links and links to elsewhere stay as they are.
 */
import { cleanPath } from './proxy-path.ts'

/** Where a page came from, and where clients see it. */
export interface PageLocation {
  /** Path under which clients see the server's root. */
  readonly prefix: string
  /** The server's own host and port. */
  readonly backendHost: string
  /** The host the client asked for. */
  readonly requestHost: string
}

/** Scheme, host, path and the rest; a text that does not look like one is no link. */
const LINK = /^(?:([a-z][a-z0-9+.-]*):)?(?:\/\/([^/?#]*))?([^?#]*)(.*)$/is

/** The link as the client must see it. */
export function rewriteUrl(link: string, { prefix, backendHost, requestHost }: PageLocation): string {
  const [, scheme = '', host = '', path = '', rest = ''] = LINK.exec(link.trim()) ?? []
  const isHere = host === backendHost || host === requestHost || (host === '' && scheme === '')
  if (!isHere || !path.startsWith('/')) return link
  // Whoever names the client's own host may go on doing so; the server's own means nothing out there.
  const origin = host !== '' && host === requestHost ? link.trim().slice(0, -path.length - rest.length) : ''
  return `${origin}${path.startsWith(prefix) ? path : under(prefix, path)}${rest}`
}

function under(prefix: string, path: string): string {
  const joined = cleanPath(`${prefix}${path}`)
  return path.endsWith('/') ? `${joined}/` : joined
}
