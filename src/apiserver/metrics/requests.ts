/**
 * Request metrics under upstream's names, so that dashboards and alerts for Kubernetes work. As upstream, requests that
 * a filter rejects are not counted.
 */
import type { RequestInfo } from '#auth/request-info.ts'
import { isLongRunning, type Load, type RequestKind } from '#component/requests/inflight.ts'
import type { FilterName, MeterRequest, Observed, RequestMeter } from '#component/requests/request-meter.ts'
import type { Clock } from '#lib/clock.ts'
import type { Counter, Gauge, Histogram } from '#lib/metrics/metrics.ts'
import type { ServerMeters } from '#model/metrics/families.ts'

import { fieldValidationOf, labelsOf, type Labels, userLabel } from './labels.ts'

export interface RequestMetricsOptions {
  readonly meters: ServerMeters
  readonly clock: Clock
  readonly load: Load
  /** True if the request addresses a served resource. */
  readonly isServed: (info: RequestInfo) => boolean
}

/** The metric handles of one kind of request. */
interface Series {
  readonly labels: Labels
  readonly total: (code: number) => Counter
  readonly duration: Histogram
  /** Not for dry runs. */
  readonly sli: Histogram | undefined
  /** For reads. */
  readonly sizes: Histogram | undefined
  readonly longRunning: Gauge
}

export function createRequestMetrics(options: RequestMetricsOptions): MeterRequest {
  const { clock, meters } = options
  const findSeries = createSeries(options)
  const shared = createShared(meters)
  registerInflight(options)
  return (request) => new Meter({ clock, meters, shared, request, findSeries })
}

/** The metrics that depend only on the result. */
interface ResultMetrics {
  readonly attempts: ByName<Counter>
  readonly authentication: ByName<Histogram>
  readonly decisions: ByName<Counter>
  readonly authorization: ByName<Histogram>
  readonly filters: ByName<Histogram>
  readonly users: ByName<Counter>
  readonly fieldValidation: ByName<Histogram>
}

type ByName<H> = (name: string) => H

function createShared(meters: ServerMeters): ResultMetrics {
  return {
    attempts: remembered((result) => meters.family('authentication_attempts').labels(result)),
    authentication: remembered((result) => meters.family('authentication_duration_seconds').labels(result)),
    decisions: remembered((result) => meters.family('authorization_attempts_total').labels(result)),
    authorization: remembered((result) => meters.family('authorization_duration_seconds').labels(result)),
    filters: remembered((filter) => meters.family('apiserver_request_filter_duration_seconds').labels(filter)),
    users: remembered((user) => meters.family('authenticated_user_requests').labels(user)),
    fieldValidation: remembered((value) => meters.family('field_validation_request_duration_seconds').labels(value)),
  }
}

/** A bounded set of names, all defined here. */
function remembered<K, H>(find: (key: K) => H): (key: K) => H {
  const known = new Map<K, H>()
  return (key) => {
    let handle = known.get(key)
    if (handle === undefined) known.set(key, (handle = find(key)))
    return handle
  }
}

interface MeterParts {
  readonly clock: Clock
  readonly meters: ServerMeters
  readonly shared: ResultMetrics
  readonly request: Observed
  readonly findSeries: (request: Observed) => Series | undefined
}

class Meter implements RequestMeter {
  readonly #parts: MeterParts
  readonly #startMs: number
  /** The time at which the last step ended. */
  #lapMs: number
  #series: Series | undefined
  #isRouted = false
  #isLong = false

  constructor(parts: MeterParts) {
    this.#parts = parts
    this.#startMs = this.#lapMs = parts.clock.elapsed()
  }

  identified(result: 'success' | 'failure' | 'error', userName: string): void {
    const { shared } = this.#parts
    const seconds = this.#lap()
    shared.attempts(result).inc()
    shared.authentication(result).observe(seconds)
    if (result !== 'success') return
    shared.users(userLabel(userName)).inc()
    shared.filters('authentication').observe(seconds)
  }

  passed(filter: FilterName): void {
    this.#parts.shared.filters(filter).observe(this.#lap())
  }

  decided(result: 'allowed' | 'denied' | 'no-opinion' | 'error'): void {
    const { shared } = this.#parts
    const seconds = this.#lap()
    shared.decisions(result).inc()
    shared.authorization(result).observe(seconds)
    if (result === 'allowed') shared.filters('authorization').observe(seconds)
  }

  routed(): void {
    const { request, findSeries } = this.#parts
    this.#isRouted = true
    this.#series = findSeries(request)
    this.#isLong = isLongRunning(request.info)
    if (this.#isLong) this.#series?.longRunning.inc()
  }

  bodyRead(bytes: number): void {
    const { info } = this.#parts.request
    const verb = info.verb === 'deletecollection' ? 'delete_collection' : info.verb
    if (this.#series === undefined) return
    this.#parts.meters
      .family('apiserver_request_body_size_bytes')
      .labels(info.resource, verb, info.group)
      .observe(bytes)
  }

  terminated(code: number): void {
    this.#series ??= this.#parts.findSeries(this.#parts.request)
    if (this.#series === undefined) return
    const { verb, group, version, resource, subresource, scope, component } = this.#series.labels
    const place = [verb, group, version, resource, subresource, scope, component] as const
    this.#parts.meters
      .family('apiserver_request_terminations_total')
      .labels(...place, String(code))
      .inc()
    if (!this.#isRouted) this.#series.total(code).inc()
  }

  aborted(): void {
    if (this.#series === undefined) return
    const { verb, group, version, resource, subresource, scope } = this.#series.labels
    this.#parts.meters
      .family('apiserver_request_aborts_total')
      .labels(verb, group, version, resource, subresource, scope)
      .inc()
  }

  finishedLate(status: 'ok' | 'error'): void {
    this.#parts.meters.family('apiserver_request_post_timeout_total').labels('timeout-handler', status).inc()
  }

  end(code: number, bytes: number | undefined): void {
    const series = this.#series
    if (series === undefined || !this.#isRouted) return
    if (this.#isLong) series.longRunning.dec()
    const { clock, shared, request } = this.#parts
    const seconds = (clock.elapsed() - this.#startMs) / 1000
    series.total(code).inc()
    series.duration.observe(seconds)
    series.sli?.observe(seconds)
    shared.fieldValidation(fieldValidationOf(request.query)).observe(seconds)
    if (bytes !== undefined) series.sizes?.observe(bytes)
  }

  #lap(): number {
    const sinceMs = this.#lapMs
    this.#lapMs = this.#parts.clock.elapsed()
    return (this.#lapMs - sinceMs) / 1000
  }
}

function createSeries({ meters, isServed }: RequestMetricsOptions): (request: Observed) => Series | undefined {
  const known = new Map<string, Series>()
  return (request) => {
    const labels = labelsOf(request)
    if (labels === undefined) return undefined
    const { verb, dryRun, group, version, resource, subresource, scope } = labels
    const key = `${verb} ${dryRun} ${group} ${version} ${resource} ${subresource} ${scope}`
    const found = known.get(key)
    if (found !== undefined) return found
    if (request.info.isResource && !isServed(request.info)) return undefined
    const series = seriesOf(meters, labels)
    known.set(key, series)
    return series
  }
}

function seriesOf(meters: ServerMeters, labels: Labels): Series {
  const { verb, dryRun, group, version, resource, subresource, scope, component } = labels
  const place = [group, version, resource, subresource, scope, component] as const
  const isRead = verb === 'GET' || verb === 'LIST'
  const total = meters.family('apiserver_request_total')
  return {
    labels,
    total: remembered((code: number) => total.labels(verb, dryRun, ...place, String(code))),
    duration: meters.family('apiserver_request_duration_seconds').labels(verb, dryRun, ...place),
    sli: dryRun === '' ? meters.family('apiserver_request_sli_duration_seconds').labels(verb, ...place) : undefined,
    sizes: isRead ? meters.family('apiserver_response_sizes').labels(verb, ...place) : undefined,
    // Created at first use: most kinds of requests are not long-running.
    get longRunning() {
      return meters.family('apiserver_longrunning_requests').labels(verb, ...place)
    },
  }
}

const KINDS: readonly RequestKind[] = ['readOnly', 'mutating']

function registerInflight({ meters, load }: RequestMetricsOptions): void {
  meters.collect('apiserver_current_inflight_requests', (emit) =>
    KINDS.forEach((kind) => emit(load.running(kind), kind)),
  )
  meters.collect('apiserver_current_inqueue_requests', (emit) =>
    KINDS.forEach((kind) => emit(load.waiting(kind), kind)),
  )
}
