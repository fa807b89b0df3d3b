/**
 * Metrics of requests to the API server, under upstream's names (component-base/metrics/prometheus/restclient, v1.36).
 */
import type { Clock } from '#lib/clock.ts'
import type { Registry } from '#lib/metrics/metrics.ts'

import type { Transport } from './api-client.ts'

const BUCKETS = [0.005, 0.025, 0.1, 0.25, 0.5, 1, 2, 4, 8, 15, 30, 60]

/**
 * Declares the metric families and returns a function that counts the requests of a transport. Call once for each
 * registry.
 */
export function registerClientMetrics(registry: Registry, clock: Clock): (transport: Transport) => Transport {
  const total = registry.counter({
    name: 'rest_client_requests_total',
    help: 'Requests that were sent, by status code, method and host.',
    labels: ['code', 'host', 'method'],
    stability: 'ALPHA',
  })
  const seconds = registry.histogram({
    name: 'rest_client_request_duration_seconds',
    help: 'Time until the answer to a request, by verb and host.',
    labels: ['host', 'verb'],
    stability: 'ALPHA',
    buckets: BUCKETS,
  })
  return (transport) => ({
    async request(request) {
      const { host } = new URL(request.url)
      const { method = 'GET' } = request
      const startMs = clock.elapsed()
      const response = await transport.request(request).catch((error: unknown) => {
        total.labels('<error>', host, method).inc()
        throw error
      })
      seconds.labels(host, method).observe((clock.elapsed() - startMs) / 1000)
      total.labels(String(response.status), host, method).inc()
      return response
    },
  })
}
