/**
 * Rewrites links of a proxied server: `/login` becomes `/api/v1/…/proxy/login`. Relative links and links to other hosts
 * stay unchanged.
 */
import { cleanPath } from './proxy-path.ts'

/** The origin of a page and its address for clients. */
export interface PageLocation {
  /** The path under which clients see the server's root. */
  readonly prefix: string
  /** The server's own host and port. */
  readonly backendHost: string
  /** The host of the client's request. */
  readonly requestHost: string
}

/** Scheme, host, path and the rest; other texts are not links. */
const LINK = /^(?:([a-z][a-z0-9+.-]*):)?(?:\/\/([^/?#]*))?([^?#]*)(.*)$/is

/** The link for the client. */
export function rewriteUrl(link: string, { prefix, backendHost, requestHost }: PageLocation): string {
  const [, scheme = '', host = '', path = '', rest = ''] = LINK.exec(link.trim()) ?? []
  const isHere = host === backendHost || host === requestHost || (host === '' && scheme === '')
  if (!isHere || !path.startsWith('/')) return link
  // Links to the client's host stay; links to the server's own host mean nothing to the client.
  const origin = host !== '' && host === requestHost ? link.trim().slice(0, -path.length - rest.length) : ''
  return `${origin}${path.startsWith(prefix) ? path : under(prefix, path)}${rest}`
}

function under(prefix: string, path: string): string {
  const joined = cleanPath(`${prefix}${path}`)
  return path.endsWith('/') ? `${joined}/` : joined
}
