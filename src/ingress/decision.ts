/** What becomes of a request. Pure. */
import { normalPath, rewrittenTarget, sendable, splitTarget } from './request-paths.ts'
import { type Backend, type Route, routeFor, type RouteTable } from './routes.ts'

/** All that is known of the cluster at one moment. */
export interface World {
  readonly routes: RouteTable
  /** Hosts that are served by TLS. */
  readonly secureHosts: ReadonlySet<string>
  /** `10.42.1.5:8080`. */
  readonly endpointsOf: (backend: Backend) => readonly string[]
  /** For what nobody else is for. */
  readonly defaultBackend: Backend | undefined
  /** Whether whoever asks is believed about whom they ask for. */
  readonly trustsForwarded: boolean
  /** Whether headers with underscores in their names are passed on. */
  readonly keepsUnderscores: boolean
}

export interface Asked {
  /** As the client named it, with its port. */
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
      /** To take turns by. */
      readonly service: string
    }

const MISSING: Decision = { is: 'answer', status: 404, text: 'default backend - 404' }
const NOBODY: Decision = { is: 'answer', status: 503, text: '503 Service Temporarily Unavailable\n' }
const BAD_PATH: Decision = { is: 'answer', status: 400, text: '400 Bad Request\n' }
/** Browsers know them. */
const HTTPS_PORT = 443

export function decide(world: World, request: Asked): Decision {
  const asked = { ...request, target: sendable(request.target) }
  const host = hostOf(asked.authority)
  const [path, query] = splitTarget(asked.target)
  const normal = normalPath(path)
  if (normal === undefined) return BAD_PATH
  const route = routeFor(world.routes, host, normal)
  if (route === undefined) return world.defaultBackend === undefined ? MISSING : fallBack(world, asked)
  if (route.options.closedBy !== undefined) return NOBODY
  if (isRedirected(world, route, host, asked)) return redirect(host, asked)
  const { backend, options } = route
  if (backend === undefined) return NOBODY
  const { rewriteTarget = '' } = options
  const target = rewriteTarget === '' ? asked.target : rewrittenTarget(rewriteTarget, route.groups, query)
  return passTo(world, backend, options, target)
}

function passTo(world: World, backend: Backend, options: Route['options'], target: string): Decision {
  const endpoints = world.endpointsOf(backend)
  if (endpoints.length === 0) return NOBODY
  const { backendProtocol: scheme, connectTimeoutMs, readTimeoutMs } = options
  const service = `${backend.namespace}/${backend.service}:${backend.port}`
  return { is: 'pass', endpoints, target, scheme, connectTimeoutMs, readTimeoutMs, service }
}

function fallBack({ defaultBackend: backend, ...world }: World, { target }: Asked): Decision {
  if (backend === undefined) return MISSING
  const endpoints = world.endpointsOf(backend)
  if (endpoints.length === 0) return MISSING
  const timeouts = { connectTimeoutMs: 5000, readTimeoutMs: 60_000 }
  return { is: 'pass', endpoints, target, scheme: 'http', service: 'default backend', ...timeouts }
}

function isRedirected({ secureHosts }: World, { options }: Route, host: string, { isSecure }: Asked): boolean {
  if (isSecure || options.redirects === 'never') return false
  return options.redirects === 'always' || secureHosts.has(host) || secureHosts.has(`*${host.slice(host.indexOf('.'))}`)
}

function redirect(host: string, { target, httpsPort }: Asked): Decision {
  const name = host.includes(':') ? `[${host}]` : host
  return { is: 'redirect', to: `https://${name}${httpsPort === HTTPS_PORT ? '' : `:${httpsPort}`}${target}` }
}

/** Without its port, in lower case. */
export function hostOf(authority: string): string {
  const [, six, name = ''] = /^(?:\[([^\]]*)\]|([^:]*))(?::\d+)?$/.exec(authority) ?? []
  return (six ?? name).toLowerCase().replace(/\.$/, '')
}
