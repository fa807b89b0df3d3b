/** Decides how to handle a request: proxy it to a backend, redirect it, or answer it directly. Pure. */
import { normalPath, rewrittenTarget, sendable, splitTarget } from './request-paths.ts'
import { type Backend, type Route, routeFor, type RouteTable } from './routes.ts'

/** The cluster's routing state at one moment. */
export interface RoutingState {
  readonly routes: RouteTable
  /** Hosts with TLS. */
  readonly secureHosts: ReadonlySet<string>
  /** `10.42.1.5:8080`. */
  readonly endpointsOf: (backend: Backend) => readonly string[]
  /** For requests without a route. */
  readonly defaultBackend: Backend | undefined
  /** Whether X-Forwarded-* headers of clients are trusted. */
  readonly trustsForwarded: boolean
  /** Whether headers with underscores are forwarded. */
  readonly keepsUnderscores: boolean
}

export interface IngressRequest {
  /** The host and port that the client sent. */
  readonly authority: string
  /** Path and query. */
  readonly target: string
  readonly isSecure: boolean
  readonly httpsPort: number
}

export type Decision =
  | { readonly is: 'answer'; readonly status: number; readonly text: string }
  | { readonly is: 'redirect'; readonly to: string }
  | {
      readonly is: 'pass'
      readonly endpoints: readonly string[]
      readonly target: string
      readonly scheme: 'http' | 'https'
      readonly connectTimeoutMs: number
      readonly readTimeoutMs: number
      /** The key for round robin. */
      readonly service: string
    }

const MISSING: Decision = { is: 'answer', status: 404, text: 'default backend - 404' }
const UNAVAILABLE: Decision = { is: 'answer', status: 503, text: '503 Service Temporarily Unavailable\n' }
const BAD_PATH: Decision = { is: 'answer', status: 400, text: '400 Bad Request\n' }
/** The default port, which redirects omit. */
const HTTPS_PORT = 443

export function decide(routingState: RoutingState, request: IngressRequest): Decision {
  const sanitized = { ...request, target: sendable(request.target) }
  const host = hostOf(sanitized.authority)
  const [path, query] = splitTarget(sanitized.target)
  const normal = normalPath(path)
  if (normal === undefined) return BAD_PATH
  const route = routeFor(routingState.routes, host, normal)
  if (route === undefined)
    return routingState.defaultBackend === undefined ? MISSING : fallBack(routingState, sanitized)
  if (route.options.closedBy !== undefined) return UNAVAILABLE
  if (isRedirected(routingState, route, host, sanitized)) return redirect(host, sanitized)
  const { backend, options } = route
  if (backend === undefined) return UNAVAILABLE
  const { rewriteTarget = '' } = options
  const target = rewriteTarget === '' ? sanitized.target : rewrittenTarget(rewriteTarget, route.groups, query)
  return passTo(routingState, backend, options, target)
}

function passTo(routingState: RoutingState, backend: Backend, options: Route['options'], target: string): Decision {
  const endpoints = routingState.endpointsOf(backend)
  if (endpoints.length === 0) return UNAVAILABLE
  const { backendProtocol: scheme, connectTimeoutMs, readTimeoutMs } = options
  const service = `${backend.namespace}/${backend.service}:${backend.port}`
  return { is: 'pass', endpoints, target, scheme, connectTimeoutMs, readTimeoutMs, service }
}

function fallBack({ defaultBackend: backend, ...routingState }: RoutingState, { target }: IngressRequest): Decision {
  if (backend === undefined) return MISSING
  const endpoints = routingState.endpointsOf(backend)
  if (endpoints.length === 0) return MISSING
  const timeouts = { connectTimeoutMs: 5000, readTimeoutMs: 60_000 }
  return { is: 'pass', endpoints, target, scheme: 'http', service: 'default backend', ...timeouts }
}

function isRedirected(
  { secureHosts }: RoutingState,
  { options }: Route,
  host: string,
  { isSecure }: IngressRequest,
): boolean {
  if (isSecure || options.redirects === 'never') return false
  return options.redirects === 'always' || secureHosts.has(host) || secureHosts.has(`*${host.slice(host.indexOf('.'))}`)
}

function redirect(host: string, { target, httpsPort }: IngressRequest): Decision {
  const name = host.includes(':') ? `[${host}]` : host
  return { is: 'redirect', to: `https://${name}${httpsPort === HTTPS_PORT ? '' : `:${httpsPort}`}${target}` }
}

/** Without port, in lower case. */
export function hostOf(authority: string): string {
  const [, six, name = ''] = /^(?:\[([^\]]*)\]|([^:]*))(?::\d+)?$/.exec(authority) ?? []
  return (six ?? name).toLowerCase().replace(/\.$/, '')
}
