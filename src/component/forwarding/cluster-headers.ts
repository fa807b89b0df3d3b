/**
 * Filters headers between browsers or users and clusters. Responses of a cluster have the server's origin, so they must
 * not set cookies, redirect to other routes or run scripts.
 */
import type { IncomingHttpHeaders } from 'node:http'

import { refusalOfRest } from './request-path.ts'

/** Credentials and addresses of this server, and names that some servers read as others. */
const WITHHELD = /^(?:cookie|forwarded|x-forwarded-.*|x-real-ip|x-hk|x-api-tunnel-.*|referer|sec-fetch-.*)$|_/

export function isWithheldFromClusters(name: string): boolean {
  return WITHHELD.test(name)
}

/** All others are dropped: browsers and proxies give many headers a meaning for the whole origin. */
const PASSED: ReadonlySet<string> = new Set([
  'accept-ranges',
  'age',
  'allow',
  'audit-id',
  'cache-control',
  'connection',
  'content-disposition',
  'content-encoding',
  'content-language',
  'content-length',
  'content-range',
  'content-type',
  'etag',
  'expires',
  'last-modified',
  'retry-after',
  'vary',
  'warning',
  'x-from-cache',
  'x-kubernetes-pf-flowschema-uid',
  'x-kubernetes-pf-prioritylevel-uid',
  'x-stream-protocol-version',
  'x-accepted-stream-protocol-versions',
])

/** A document of a cluster runs no script, has no origin and loads nothing. */
const SAFETY: IncomingHttpHeaders = {
  'content-security-policy': "default-src 'none'; sandbox",
  'cross-origin-resource-policy': 'same-origin',
  'referrer-policy': 'no-referrer',
  'x-content-type-options': 'nosniff',
  'x-frame-options': 'DENY',
}

interface ProxiedRequest {
  readonly cluster: string
  /** Path and query of the request for the cluster, with `base`. */
  readonly path: string
  /** The path of the API server, without a slash at the end; default: none. */
  readonly base?: string
  /** Of the cluster, as the link names it. */
  readonly origin: string
}

export function responseFilter(request: ProxiedRequest): (headers: IncomingHttpHeaders) => IncomingHttpHeaders {
  return (headers) => {
    const kept: IncomingHttpHeaders = {}
    for (const name of Object.keys(headers)) if (PASSED.has(name)) kept[name] = headers[name]
    Object.assign(kept, SAFETY)
    const { location, 'cache-control': caching } = headers
    const inside = location === undefined ? undefined : locationInside(location, request)
    if (inside !== undefined) kept.location = inside
    // Caches in front of the server must not give the answer to others.
    if (caching !== undefined) kept['cache-control'] = caching.replaceAll(/\bpublic\b/gi, 'private')
    return kept
  }
}

/**
 * The redirect within the same cluster; undefined for others. Clients repeat the request with their credentials, so a
 * cluster could otherwise use them for another cluster.
 */
function locationInside(location: string, { cluster, path, base = '', origin }: ProxiedRequest): string | undefined {
  const to = URL.parse(location, `${origin}${path}`)
  if (to === null || to.origin !== new URL(origin).origin || !to.pathname.startsWith(`${base}/`)) return undefined
  const target = `${to.pathname.slice(base.length)}${to.search}`
  return refusalOfRest(target) === undefined ? `/k8s/clusters/${cluster}${target}` : undefined
}

/** Of `Sec-Fetch-Dest`: data, and documents, which are in a sandbox. Not scripts and styles of our pages. */
const DESTINATIONS: ReadonlySet<unknown> = new Set([undefined, 'empty', 'document', 'websocket'])

export function isReadableAs(destination: string | readonly string[] | undefined): boolean {
  return DESTINATIONS.has(destination)
}
