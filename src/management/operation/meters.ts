/** The Prometheus metrics of the management server: requests, log-ins, tunnels, replicas, and the process. */
import type { Clock } from '#lib/clock.ts'
import type { Exchange } from '#lib/http/exchange.ts'
import { createRegistry, type Registry } from '#lib/metrics/metrics.ts'
import { readProcess, registerLoopMetrics, registerProcessMetrics, watchLoopDelay } from '#lib/metrics/process.ts'
import { createMeters, type Meters } from '#lib/metrics/table.ts'

import type { HubCounts } from '../links/tunnel-hub.ts'
import type { Route } from '../port/route.ts'

const BUCKETS = { request: [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60] }

export const SERVER_FAMILIES = {
  hyperkube_server_requests_total: `counter ALPHA [route method code] Requests, by route, method and status code.`,
  hyperkube_server_request_duration_seconds: `histogram:request ALPHA [route method] Time that requests take, without watches, logs that are followed, and upgrades.`,
  hyperkube_server_requests_inflight: `gauge ALPHA [] Requests that the server serves at the moment.`,
  hyperkube_server_logins_total: `counter ALPHA [result] Attempts to log in: succeeded, failed, or refused because there were too many.`,
  hyperkube_server_tunnels: `gauge ALPHA [] Tunnels of agents that are connected to this replica.`,
  hyperkube_server_tunnel_streams: `gauge ALPHA [] Open streams in all tunnels of this replica.`,
  hyperkube_server_tunnel_bytes_total: `counter ALPHA [direction] Bytes of the frames that tunnels have received and sent.`,
  hyperkube_server_objects: `gauge ALPHA [kind] Objects of the management API.`,
  hyperkube_server_replicas: `gauge ALPHA [state] Replicas of the server, this one included: alive, and connected with this one.`,
  hyperkube_server_leads: `gauge ALPHA [] Whether this replica leads.`,
  hyperkube_server_audit_lost_total: `counter ALPHA [] Lines of the audit log that could not be written.`,
} as const

export interface Sources {
  readonly clock: Clock
  readonly hub: () => HubCounts
  /** How many objects there are, by kind. */
  readonly objects: () => ReadonlyMap<string, number>
  readonly replicas: () => { readonly known: number; readonly connected: number }
  readonly leads: () => boolean
  readonly lostAuditLines: () => number
}

export interface ServerMeters extends Disposable {
  readonly registry: Registry
  /** For `createPort`. */
  observe(exchange: Exchange): (route: Route | undefined, status: number) => void
}

export function createServerMeters(sources: Sources): ServerMeters {
  const { clock } = sources
  const registry = createRegistry()
  const meters = createMeters(registry, SERVER_FAMILIES, BUCKETS)
  const delay = watchLoopDelay()
  registerProcessMetrics(registry, readProcess(clock))
  registerLoopMetrics(registry, delay)
  collect(meters, sources)
  const requests = meters.family('hyperkube_server_requests_total')
  const durations = meters.family('hyperkube_server_request_duration_seconds')
  const logins = meters.family('hyperkube_server_logins_total')
  let inflight = 0
  meters.collect('hyperkube_server_requests_inflight', (emit) => emit(inflight))
  return {
    registry,
    observe(exchange) {
      const startedMs = clock.elapsed()
      inflight++
      return (route, status) => {
        inflight--
        if (status === 0) return
        const path = route?.path ?? ''
        const method = methodLabel(exchange.method)
        requests.labels(path, method, String(status)).inc()
        const isLong = status === 101 || lastsLong(exchange.path)
        if (!isLong) durations.labels(path, method).observe((clock.elapsed() - startedMs) / 1000)
        const login = loginResult({ path, method }, status)
        if (login !== undefined) logins.labels(login).inc()
      }
    },
    [Symbol.dispose]: () => delay[Symbol.dispose](),
  }
}

function collect(meters: Meters<typeof SERVER_FAMILIES>, sources: Sources): void {
  meters.collect('hyperkube_server_tunnels', (emit) => emit(sources.hub().tunnels))
  meters.collect('hyperkube_server_tunnel_streams', (emit) => emit(sources.hub().streams))
  meters.collect('hyperkube_server_tunnel_bytes_total', (emit) => {
    const { receivedBytes, sentBytes } = sources.hub()
    emit(receivedBytes, 'received')
    emit(sentBytes, 'sent')
  })
  meters.collect('hyperkube_server_objects', (emit) => {
    for (const [kind, count] of sources.objects()) emit(count, kind)
  })
  meters.collect('hyperkube_server_replicas', (emit) => {
    const { known, connected } = sources.replicas()
    emit(known + 1, 'alive')
    emit(connected + 1, 'connected')
  })
  meters.collect('hyperkube_server_leads', (emit) => emit(sources.leads() ? 1 : 0))
  meters.collect('hyperkube_server_audit_lost_total', (emit) => emit(sources.lostAuditLines()))
}

const METHODS: ReadonlySet<string> = new Set(['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS'])

/** Clients choose methods freely; each label stays in memory. */
function methodLabel(method: string): string {
  return METHODS.has(method) ? method : 'other'
}

/** Watches, and logs that are followed. */
export function lastsLong(target: string): boolean {
  const mark = target.indexOf('?')
  if (mark < 0) return false
  const query = new URLSearchParams(target.slice(mark))
  return ['watch', 'follow'].some((name) => ['1', 'true'].includes(query.get(name) ?? ''))
}

/** Undefined for requests that are not log-ins. */
export function loginResult(
  { path, method }: { readonly path: string; readonly method: string },
  status: number,
): 'succeeded' | 'failed' | 'throttled' | undefined {
  const isLogin = path.startsWith('/v3-public/') && (method === 'POST' || path.endsWith('/callback'))
  if (!isLogin) return undefined
  if (status === 429) return 'throttled'
  return status < 400 ? 'succeeded' : 'failed'
}
