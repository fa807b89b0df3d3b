/** Filters and routes of `kubectl proxy`. No encoding of a path bypasses a filter. Pure. */
import { posix } from 'node:path'

import { compileRegexp, type Regexp } from '#lib/regexp.ts'

import { asError, KubectlError } from '../errors.ts'
import { type Readings, type RequestTarget, sendable } from './proxy-target.ts'

export interface FilterFlags {
  readonly 'accept-paths': string
  readonly 'reject-paths': string
  readonly 'accept-hosts': string
  readonly 'reject-methods': string
}

export interface FilteredRequest {
  readonly method: string
  readonly readings: Readings
  /** With a port, or without: the Host header, and the host of an absolute request target. */
  readonly hosts: readonly string[]
}

/** Whether a request may pass. */
export type Filter = (request: FilteredRequest) => boolean

/** Throws KubectlError for a text that is no regular expression. */
export function filterOf(flags: FilterFlags): Filter {
  const [accepted, rejected, acceptedHosts, methods] = (
    ['accept-paths', 'reject-paths', 'accept-hosts', 'reject-methods'] as const
  ).map((name) => patternsIn(flags[name])) as [Regexp[], Regexp[], Regexp[], Regexp[]]
  const matches = (patterns: readonly Regexp[], text: string): boolean => patterns.some((one) => one.test(text))
  return ({ method, readings, hosts }) =>
    !readings.toReject.some((path) => matches(rejected, path)) &&
    !matches(methods, method) &&
    readings.toAccept.every((path) => matches(accepted, path)) &&
    hosts.every((host) => matches(acceptedHosts, hostIn(host)))
}

function patternsIn(text: string): Regexp[] {
  if (text === '') return []
  try {
    return text.split(',').map(compileRegexp)
  } catch (cause) {
    throw new KubectlError(`Error compiling re: ${asError(cause).message}`, { cause })
  }
}

/** Go takes the brackets of an IPv6 address away together with the port. */
function hostIn(host: string): string {
  const [, bracketed, plain] = /^(?:\[([^\]]*)\]|([^:]*)):\d*$/.exec(host) ?? []
  return bracketed ?? plain ?? host
}

export function withSlash(prefix: string): string {
  return prefix.endsWith('/') ? prefix : `${prefix}/`
}

export type Route =
  /** `path` goes to the filters, `query` beside it to the server. */
  | { readonly to: 'api'; readonly path: string; readonly query: string }
  | { readonly to: 'files'; readonly path: string }
  | { readonly to: 'nowhere' }
  /** The client is redirected to the same path without dot segments and doubled slashes. */
  | { readonly to: 'clean'; readonly path: string }

export interface Prefixes {
  readonly api: string
  /** Undefined: no files are served. */
  readonly files?: string | undefined
}

/** The longest prefix counts. */
export function routeOf({ path, query }: RequestTarget, { api, files }: Prefixes): Route {
  const clean = posix.normalize(path === '' ? '/' : path)
  if (clean !== path) return { to: 'clean', path: sendable(clean + query) }
  const isFile = files !== undefined && path.startsWith(files)
  const isApi = path.startsWith(api)
  if (isFile && (!isApi || files.length > api.length)) return { to: 'files', path: path.slice(files.length) }
  if (!isApi) return { to: 'nowhere' }
  return { to: 'api', path: api.startsWith('/api') ? path : `/${path.slice(api.length)}`, query }
}
