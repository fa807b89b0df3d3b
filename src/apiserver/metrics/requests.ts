/**
 * What requests cost, under upstream's names, so that dashboards and alerts made for Kubernetes work. A meter goes along
 * with each request and is told what it has passed; handles are found once for each kind of request. What is refused by
 * a filter has cost no more than the filter, and is not counted as a request: upstream counts the same way.
 */
import type { Clock } from '#lib/clock.ts'
import type { Counter, Gauge, Histogram } from '#lib/metrics.ts'
import type { ServerMeters } from '#model/metrics/families.ts'

import { isLongRunning, type Load, type RequestKind } from '../filters/inflight.ts'
import type { RequestInfo } from '../request-info.ts'
import { fieldValidationOf, labelsOf, type Labels, type Observed, userLabel } from './labels.ts'

export interface RequestMetricsOptions {
  readonly meters: ServerMeters
  readonly clock: Clock
  readonly load: Load
  /** Whether the request is about something that is served. */
  readonly isServed: (info: RequestInfo) => boolean
}

export type Filter = 'authentication' | 'audit' | 'impersonation' | 'priorityandfairness' | 'authorization'

/** One request, told of in the order in which it goes. */
export interface RequestMeter {
  /** Who asks is known (`success`), shows no credentials (`failure`), or wrong ones (`error`). */
  identified(result: 'success' | 'failure' | 'error', userName: string): void
  /** The request has left a filter, which took all the time since the last one. */
  passed(filter: Filter): void
  judged(result: 'allowed' | 'denied' | 'no-opinion' | 'error'): void
  /** It is answered from here on: what goes on counts as running. */
  routed(): void
  bodyRead(bytes: number): void
  /** The server gave up on it, by this code. */
  terminated(code: number): void
  /** The answer was broken off. */
  aborted(): void
  /** The work was done when nobody waited for it any more. */
  finishedLate(status: 'ok' | 'error'): void
  /** Once. `bytes` of the answer, where known. */
  end(code: number, bytes: number | undefined): void
}

export type MeterRequest = (request: Observed) => RequestMeter

/** The handles of one kind of request. */
interface Series {
  readonly labels: Labels
  readonly total: (code: number) => Counter
  readonly duration: Histogram
  /** Not of dry runs. */
  readonly sli: Histogram | undefined
  /** Of reads. */
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

/** What is told apart by outcome alone. */
interface Shared {
  readonly attempts: ByName<Counter>
  readonly authentication: ByName<Histogram>
  readonly judgements: ByName<Counter>
  readonly authorization: ByName<Histogram>
  readonly filters: ByName<Histogram>
  readonly users: ByName<Counter>
  readonly fieldValidation: ByName<Histogram>
}

type ByName<H> = (name: string) => H

function createShared(meters: ServerMeters): Shared {
  return {
    attempts: remembered((result) => meters.family('authentication_attempts').labels(result)),
    authentication: remembered((result) => meters.family('authentication_duration_seconds').labels(result)),
    judgements: remembered((result) => meters.family('authorization_attempts_total').labels(result)),
    authorization: remembered((result) => meters.family('authorization_duration_seconds').labels(result)),
    filters: remembered((filter) => meters.family('apiserver_request_filter_duration_seconds').labels(filter)),
    users: remembered((user) => meters.family('authenticated_user_requests').labels(user)),
    fieldValidation: remembered((value) => meters.family('field_validation_request_duration_seconds').labels(value)),
  }
}

/** Few names, all of them ours. */
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
  readonly shared: Shared
  readonly request: Observed
  readonly findSeries: (request: Observed) => Series | undefined
}

class Meter implements RequestMeter {
  readonly #parts: MeterParts
  readonly #startMs: number
  /** When the last step was over. */
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

  passed(filter: Filter): void {
    this.#parts.shared.filters(filter).observe(this.#lap())
  }

  judged(result: 'allowed' | 'denied' | 'no-opinion' | 'error'): void {
    const { shared } = this.#parts
    const seconds = this.#lap()
    shared.judgements(result).inc()
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
    // Made at first use: most kinds of requests have an end.
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

function nothing(): void {}

/** For servers that nobody measures. */
export const UNMETERED: RequestMeter = {
  identified: nothing,
  passed: nothing,
  judged: nothing,
  routed: nothing,
  bodyRead: nothing,
  terminated: nothing,
  aborted: nothing,
  finishedLate: nothing,
  end: nothing,
}
