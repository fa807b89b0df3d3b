/** Counts requests to the kubelet by upstream's path classes, so that labels stay bounded. */
import type { Clock } from '#lib/clock.ts'
import type { Exchange } from '#lib/http/exchange.ts'

import type { KubeletMeters } from './kubelet-families.ts'

const METHODS = new Set(['CONNECT', 'DELETE', 'GET', 'HEAD', 'OPTIONS', 'PATCH', 'POST', 'PUT', 'TRACE'])
const PATHS = new Set([
  'attach',
  'checkpoint',
  'configz',
  'containerLogs',
  'debug',
  'exec',
  'healthz',
  'logs',
  'metrics',
  'metrics/cadvisor',
  'metrics/probes',
  'metrics/resource',
  'pods',
  'portForward',
  'run',
  'runningpods',
  'stats',
])
const LONG_RUNNING = new Set(['exec', 'attach', 'portForward', 'debug'])
const STREAMS = new Set(['exec', 'attach', 'portForward'])

/** `metrics/cadvisor`, `exec`, …; `other` for unknown paths. Pure. */
export function pathClass(path: string): string {
  const [first = '', second = ''] = (path.split('?')[0] ?? '').split('/').slice(1)
  const whole = `${first}/${second}`
  if (PATHS.has(whole)) return whole
  return PATHS.has(first) ? first : 'other'
}

type Serve = (exchange: Exchange) => void | Promise<void>

export function countRequests(meters: KubeletMeters, clock: Clock, isReadOnly: boolean): (serve: Serve) => Serve {
  const type = isReadOnly ? 'readonly' : 'readwrite'
  return (serve) => async (exchange) => {
    const path = pathClass(exchange.path)
    const method = METHODS.has(exchange.method) ? exchange.method : 'other'
    const labels = [method, path, type, String(LONG_RUNNING.has(path))] as const
    if (STREAMS.has(path) && exchange.upgradeProtocol?.toLowerCase() === 'websocket') {
      meters.family('kubelet_websocket_streaming_requests_total').labels(path.toLowerCase()).inc()
    }
    const running = meters.family('kubelet_http_inflight_requests').labels(...labels)
    meters
      .family('kubelet_http_requests_total')
      .labels(...labels)
      .inc()
    running.inc()
    const startMs = clock.elapsed()
    try {
      await serve(exchange)
    } finally {
      running.dec()
      const durations = meters.family('kubelet_http_requests_duration_seconds').labels(...labels)
      durations.observe((clock.elapsed() - startMs) / 1000)
    }
  }
}
