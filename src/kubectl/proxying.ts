/** What `kubectl proxy` lets through, and to where. Pure. */
import { posix } from 'node:path'

import { compileRegexp, type Regexp } from '#lib/regexp.ts'

import { asError, KubectlError } from './errors.ts'

export interface FilterFlags {
  readonly 'accept-paths': string
  readonly 'reject-paths': string
  readonly 'accept-hosts': string
  readonly 'reject-methods': string
}

export interface Asked {
  readonly method: string
  /** Decoded. */
  readonly path: string
  /** With a port, or without. */
  readonly host: string
}

export type Filter = (asked: Asked) => boolean

/** Throws KubectlError for what is no regular expression. */
export function filterOf(flags: FilterFlags): Filter {
  const [accepted, rejected, hosts, methods] = (
    ['accept-paths', 'reject-paths', 'accept-hosts', 'reject-methods'] as const
  ).map((name) => patternsIn(flags[name])) as [Regexp[], Regexp[], Regexp[], Regexp[]]
  const matches = (patterns: readonly Regexp[], text: string): boolean => patterns.some((one) => one.test(text))
  return ({ method, path, host }) =>
    !matches(rejected, path) && !matches(methods, method) && matches(accepted, path) && matches(hosts, hostIn(host))
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
  | { readonly to: 'api'; readonly path: string }
  | { readonly to: 'files'; readonly path: string }
  | { readonly to: 'nowhere' }
  /** Elsewhere: a path with dots or doubled slashes is asked for again without. */
  | { readonly to: 'clean'; readonly path: string }

export interface Prefixes {
  readonly api: string
  /** Undefined: no files are served. */
  readonly files?: string | undefined
}

/** The longest prefix counts. `target` is path and query as they came. */
export function routeOf(target: string, { api, files }: Prefixes): Route {
  const at = target.indexOf('?')
  const path = at < 0 ? target : target.slice(0, at)
  const query = at < 0 ? '' : target.slice(at)
  const clean = posix.normalize(path)
  if (clean !== path) return { to: 'clean', path: clean + query }
  const isFile = files !== undefined && path.startsWith(files)
  const isApi = path.startsWith(api)
  if (isFile && (!isApi || files.length > api.length)) return { to: 'files', path: path.slice(files.length) }
  if (!isApi) return { to: 'nowhere' }
  return { to: 'api', path: (api.startsWith('/api') ? path : `/${path.slice(api.length)}`) + query }
}
