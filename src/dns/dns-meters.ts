/** Metrics of DNS with CoreDNS' names, for existing dashboards. */
import { exponentialBuckets, type Registry } from '#lib/metrics/metrics.ts'

import type { Transport } from './forwarder.ts'
import { type Query, RCODE, TYPE } from './wire.ts'

export interface QueryOutcome {
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
  answered(query: Query, outcome: QueryOutcome): void
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
/** The labels `server` and `zone` are constant. */
const SERVER_AND_ZONE = ['dns://:53', '.'] as const

export function createDnsMeters(registry: Registry): DnsMeters {
  const requests = registry.counter({
    name: 'coredns_dns_requests_total',
    help: 'Questions received, by zone, protocol and family.',
    labels: ['server', 'zone', 'proto', 'type'],
  })
  const responses = registry.counter({
    name: 'coredns_dns_responses_total',
    help: 'Answers sent, by response code.',
    labels: ['server', 'zone', 'rcode'],
  })
  const duration = registry.histogram({
    name: 'coredns_dns_request_duration_seconds',
    help: 'Time until the answer to a question.',
    labels: ['server', 'zone'],
    buckets: exponentialBuckets(0.000_25, 2, 16),
  })
  const hits = registry.counter({
    name: 'coredns_cache_hits_total',
    help: 'Questions answered from the cache.',
    labels: ['server', 'zones'],
  })
  const misses = registry.counter({
    name: 'coredns_cache_misses_total',
    help: 'Questions that the cache could not answer.',
    labels: ['server', 'zones'],
  })
  const seconds = duration.labels(...SERVER_AND_ZONE)
  return {
    answered({ type }, { code, via, seconds: took }) {
      requests.labels(...SERVER_AND_ZONE, via, TYPE_NAMES.get(type) ?? 'other').inc()
      responses.labels(...SERVER_AND_ZONE, RCODE_NAMES.get(code) ?? String(code)).inc()
      seconds.observe(took)
    },
    looked: (isHit) => (isHit ? hits : misses).labels(...SERVER_AND_ZONE).inc(),
    follow(sizes) {
      const tell = (name: string, help: string, type: 'counter' | 'gauge', read: () => number): void =>
        registry.callback({ name, help, type, collect: (emit) => emit(read()) })
      tell('coredns_cache_entries', 'Answers in the cache.', 'gauge', sizes.cached)
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
