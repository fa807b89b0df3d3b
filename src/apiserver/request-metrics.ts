/**
 * What requests cost, under upstream's metric names and labels, so that dashboards and alerts made for Kubernetes work.
 * Labels come from the request only where it addresses something that is served: nobody can make new series at will.
 */
import type { Clock } from '#lib/clock.ts'
import { type Counter, exponentialBuckets, type Gauge, type Histogram, type Registry } from '#lib/metrics.ts'

import { type Inflight, isLongRunning, type RequestKind } from './inflight.ts'
import type { RequestInfo } from './request-info.ts'

export interface RequestMetricsOptions {
  readonly registry: Registry
  readonly clock: Clock
  readonly inflight: Inflight
  /** Whether the request is about something that is served. */
  readonly isServed: (info: RequestInfo) => boolean
}

/** One request from its beginning. */
export interface RequestObservation {
  /** The request is over; once. `bytes` of the answer, where known. */
  end(code: number, bytes: number | undefined): void
}

/** What is to be told of every request. */
export interface Observed {
  readonly info: RequestInfo
  readonly method: string
  readonly contentType: string
  readonly isDryRun: boolean
}

export type ObserveRequest = (request: Observed) => RequestObservation

const LATENCY_BUCKETS = [
  0.005, 0.025, 0.05, 0.1, 0.2, 0.4, 0.6, 0.8, 1, 1.25, 1.5, 2, 3, 4, 5, 6, 8, 10, 15, 20, 30, 45, 60,
]
const PLACE = ['group', 'version', 'resource', 'subresource', 'scope', 'component'] as const
const LABELS = ['verb', 'dry_run', ...PLACE] as const

/** The handles of one kind of request, found once. */
interface Series {
  readonly duration: Histogram
  readonly sizes: Histogram
  readonly longRunning: Gauge
  readonly byCode: Map<number, Counter>
  total(code: number): Counter
}

export function createRequestMetrics(options: RequestMetricsOptions): ObserveRequest {
  const { clock, isServed } = options
  const findSeries = createSeries(options.registry)
  registerInflight(options)
  return (request) => {
    const { info } = request
    const series = findSeries(request, isServed(info))
    const isLong = isLongRunning(info)
    const startMs = clock.elapsed()
    if (isLong) series.longRunning.inc()
    return {
      end(code, bytes) {
        if (isLong) series.longRunning.dec()
        let total = series.byCode.get(code)
        if (total === undefined) series.byCode.set(code, (total = series.total(code)))
        total.inc()
        series.duration.observe((clock.elapsed() - startMs) / 1000)
        if (bytes !== undefined) series.sizes.observe(bytes)
      },
    }
  }
}

function createSeries(registry: Registry): (request: Observed, isServed: boolean) => Series {
  const total = registry.counter({
    name: 'apiserver_request_total',
    help: 'Requests by verb, dry run, resource, scope, component and status code of the answer.',
    stability: 'STABLE',
    labels: [...LABELS, 'code'] as const,
  })
  const duration = registry.histogram({
    name: 'apiserver_request_duration_seconds',
    help: 'How long requests took, in seconds, by verb, dry run, resource, scope and component.',
    stability: 'STABLE',
    labels: LABELS,
    buckets: LATENCY_BUCKETS,
  })
  const sizes = registry.histogram({
    name: 'apiserver_response_sizes',
    help: 'Sizes of answers in bytes, by verb, resource, scope and component.',
    stability: 'STABLE',
    labels: ['verb', ...PLACE],
    buckets: exponentialBuckets(1000, 10, 7),
  })
  const longRunning = registry.gauge({
    name: 'apiserver_longrunning_requests',
    help: 'Requests without a natural end, such as watches, that are running now.',
    stability: 'STABLE',
    labels: ['verb', ...PLACE],
  })
  const known = new Map<string, Series>()
  return (request, isServed) => {
    const verb = verbOf(request)
    const place = placeOf(request.info, isServed)
    const dryRun = request.isDryRun ? 'All' : ''
    const key = `${verb} ${dryRun} ${place.join(' ')}`
    let series = known.get(key)
    if (series === undefined) {
      series = {
        duration: duration.labels(verb, dryRun, ...place),
        sizes: sizes.labels(verb, ...place),
        longRunning: longRunning.labels(verb, ...place),
        byCode: new Map(),
        total: (code) => total.labels(verb, dryRun, ...place, String(code)),
      }
      known.set(key, series)
    }
    return series
  }
}

type Place = readonly [
  group: string,
  version: string,
  resource: string,
  subresource: string,
  scope: string,
  component: string,
]

const NOWHERE: Place = ['', '', '', '', '', 'apiserver']

function placeOf(
  { isResource, group, version, resource, subresource, name, namespace }: RequestInfo,
  isServed: boolean,
): Place {
  if (!isResource || !isServed) return NOWHERE
  const scope = name !== '' ? 'resource' : namespace !== '' ? 'namespace' : 'cluster'
  return [group, version, resource, subresource, scope, 'apiserver']
}

const VERBS: ReadonlyMap<string, string> = new Map([
  ['get', 'GET'],
  ['list', 'LIST'],
  ['watch', 'WATCH'],
  ['create', 'POST'],
  ['update', 'PUT'],
  ['patch', 'PATCH'],
  ['delete', 'DELETE'],
  ['deletecollection', 'DELETECOLLECTION'],
  ['post', 'POST'],
  ['put', 'PUT'],
])

const CONNECTS: ReadonlySet<string> = new Set(['attach', 'exec', 'log', 'portforward', 'proxy'])

/** As upstream names them: by HTTP method, and by what the method does where that is more. */
function verbOf({ info, contentType }: Observed): string {
  if (info.isResource && CONNECTS.has(info.subresource)) return 'CONNECT'
  if (info.verb === 'patch' && contentType.startsWith('application/apply-patch+')) return 'APPLY'
  return VERBS.get(info.verb) ?? 'other'
}

const KINDS: readonly RequestKind[] = ['readOnly', 'mutating']

function registerInflight({ registry, inflight }: RequestMetricsOptions): void {
  registry.callback({
    type: 'gauge',
    name: 'apiserver_current_inflight_requests',
    help: 'Requests that are running now and count towards the limits, by request kind.',
    stability: 'STABLE',
    labels: ['request_kind'],
    collect: (emit) => KINDS.forEach((kind) => emit(inflight.running(kind), kind)),
  })
  registry.callback({
    type: 'counter',
    name: 'apiserver_dropped_requests_total',
    help: 'Requests that were turned away because too many were running, by request kind.',
    stability: 'ALPHA',
    labels: ['request_kind'],
    collect: (emit) => KINDS.forEach((kind) => emit(inflight.dropped(kind), kind)),
  })
}
