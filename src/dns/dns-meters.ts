/** What the server counts, under the names that dashboards for CoreDNS look for. */
import { exponentialBuckets, type Registry } from '#lib/metrics.ts'

import type { Transport } from './forwarder.ts'
import { type Query, RCODE, TYPE } from './wire.ts'

export interface Told {
  readonly code: number
  readonly via: Transport
  readonly seconds: number
}

interface Sizes {
  readonly cached: () => number
  readonly underWay: () => number
  readonly failures: () => number
}

export interface DnsMeters {
  answered(query: Query, told: Told): void
  looked(isHit: boolean): void
  follow(sizes: Sizes): void
}

const TYPE_NAMES = new Map<number, string>(Object.entries(TYPE).map(([name, type]) => [type, name]))
const RCODE_NAMES = new Map<number, string>([
  [RCODE.success, 'NOERROR'],
  [RCODE.formatError, 'FORMERR'],
  [RCODE.serverFailure, 'SERVFAIL'],
  [RCODE.nameError, 'NXDOMAIN'],
  [RCODE.notImplemented, 'NOTIMP'],
  [RCODE.refused, 'REFUSED'],
])
/** `server` and `zone`: there is one of each. */
const PLACE = ['dns://:53', '.'] as const

export function createDnsMeters(registry: Registry): DnsMeters {
  const requests = registry.counter({
    name: 'coredns_dns_requests_total',
    help: 'Counter of DNS requests made per zone, protocol and family.',
    labels: ['server', 'zone', 'proto', 'type'],
  })
  const responses = registry.counter({
    name: 'coredns_dns_responses_total',
    help: 'Counter of response status codes.',
    labels: ['server', 'zone', 'rcode'],
  })
  const duration = registry.histogram({
    name: 'coredns_dns_request_duration_seconds',
    help: 'Histogram of the time (in seconds) each request took per zone.',
    labels: ['server', 'zone'],
    buckets: exponentialBuckets(0.000_25, 2, 16),
  })
  const hits = registry.counter({
    name: 'coredns_cache_hits_total',
    help: 'The count of cache hits.',
    labels: ['server', 'zones'],
  })
  const misses = registry.counter({
    name: 'coredns_cache_misses_total',
    help: 'The count of cache misses. Deprecated, derive misses from cache hits/requests counters.',
    labels: ['server', 'zones'],
  })
  const seconds = duration.labels(...PLACE)
  return {
    answered({ type }, { code, via, seconds: took }) {
      requests.labels(...PLACE, via, TYPE_NAMES.get(type) ?? 'other').inc()
      responses.labels(...PLACE, RCODE_NAMES.get(code) ?? String(code)).inc()
      seconds.observe(took)
    },
    looked: (isHit) => (isHit ? hits : misses).labels(...PLACE).inc(),
    follow(sizes) {
      const tell = (name: string, help: string, type: 'counter' | 'gauge', read: () => number): void =>
        registry.callback({ name, help, type, collect: (emit) => emit(read()) })
      tell('coredns_cache_entries', 'The number of elements in the cache.', 'gauge', sizes.cached)
      tell('coredns_forward_concurrent_requests', 'Questions that wait for other servers.', 'gauge', sizes.underWay)
      tell(
        'coredns_proxy_request_failures_total',
        'Questions that a server did not answer in time.',
        'counter',
        sizes.failures,
      )
    },
  }
}
