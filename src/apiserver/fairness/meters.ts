/** Metrics of flow schemas, priority levels, and concurrent reads and writes, under upstream's names. */
import type { RequestKind } from '#component/requests/inflight.ts'
import type { Histogram } from '#lib/metrics/metrics.ts'
import type { ServerMeters } from '#model/metrics/families.ts'

import type { SetObserver, SetTotals } from './queue-set.ts'
import type { FlowObserver } from './queue.ts'

export interface FlowMeter extends FlowObserver {
  estimated(seats: number): void
  /** The number of watches that a write may notify. */
  watched(count: number): void
}

export function createFlowMeter(meters: ServerMeters, level: string, name: string): FlowMeter {
  const dispatched = meters.family('apiserver_flowcontrol_dispatched_requests_total').labels(level, name)
  const executing = meters.family('apiserver_flowcontrol_current_executing_requests').labels(level, name)
  const seats = meters.family('apiserver_flowcontrol_current_executing_seats').labels(level, name)
  const inQueue = meters.family('apiserver_flowcontrol_current_inqueue_requests').labels(level, name)
  const seatsInQueue = meters.family('apiserver_flowcontrol_current_inqueue_seats').labels(level, name)
  const lengths = meters.family('apiserver_flowcontrol_request_queue_length_after_enqueue')
  const waits = meters.family('apiserver_flowcontrol_request_wait_duration_seconds')
  const executions = meters.family('apiserver_flowcontrol_request_execution_seconds')
  const rejections = meters.family('apiserver_flowcontrol_rejected_requests_total')
  const estimates = meters.family('apiserver_flowcontrol_work_estimated_seats').labels(level, name)
  const noRoom = meters.family('apiserver_flowcontrol_request_dispatch_no_accommodation_total')
  const length = once(() => lengths.labels(level, name))
  const waited = once(() => waits.labels(level, name, 'true'))
  const regular = once(() => executions.labels(level, name, 'regular'))
  const watches = once(() => executions.labels(level, name, 'watch'))
  const samples = once(() => meters.family('apiserver_flowcontrol_watch_count_samples').labels(level, name))
  return {
    queued(ticket, count) {
      inQueue.inc()
      seatsInQueue.inc(ticket.seats)
      length().observe(count)
    },
    unqueued(ticket) {
      inQueue.dec()
      seatsInQueue.dec(ticket.seats)
    },
    started({ arrivedMs, startedMs }, mayWait) {
      dispatched.inc()
      executing.inc()
      if (mayWait) waited().observe((startedMs - arrivedMs) / 1000)
    },
    finished({ startedMs, info }, nowMs) {
      executing.dec()
      const took = info.verb === 'watch' ? watches() : regular()
      took.observe((nowMs - startedMs) / 1000)
    },
    seatsGiven: (count) => seats.inc(count),
    rejected(reason, waitedMs) {
      rejections.labels(level, name, reason).inc()
      // As upstream counts: rejected requests are separate from those that did not wait.
      waits.labels(level, name, String(reason === 'time-out')).observe(waitedMs / 1000)
    },
    notAccommodated: () => noRoom.labels(level, name).inc(),
    estimated: (count) => estimates.observe(count),
    watched: (count) => samples().observe(count),
  }
}

function once<T>(make: () => T): () => T {
  let made: T | undefined
  return () => (made ??= make())
}

/** Histograms over time: the time a ratio had each value, in nanoseconds. */
export class TimedRatios {
  readonly #histograms: readonly Histogram[]
  readonly #values: number[]
  #sinceMs: number

  constructor(histograms: readonly Histogram[], nowMs: number) {
    this.#histograms = histograms
    this.#values = histograms.map(() => 0)
    this.#sinceMs = nowMs
  }

  /** Accumulates the time since the last change. */
  advance(nowMs: number): void {
    const spanNs = Math.round((nowMs - this.#sinceMs) * 1e6)
    if (spanNs <= 0) return
    this.#sinceMs = nowMs
    for (let at = 0; at < this.#values.length; at++) {
      this.#histograms[at]?.observe(this.#values[at] as number, spanNs)
    }
  }

  /** Sets the new value; call `advance` first. */
  set(at: number, value: number): void {
    this.#values[at] = value
  }
}

/** The capacity of a level, for ratios. */
export interface Capacity {
  readonly queued: number
  readonly seats: number
}

export class LevelMeter implements SetObserver {
  readonly #ratios: TimedRatios
  readonly #demand: { set(seats: number, nowMs: number): void }
  capacity: Capacity = { queued: 1, seats: 1 }

  constructor(meters: ServerMeters, level: string, demand: { set(seats: number, nowMs: number): void }, nowMs: number) {
    const requests = meters.family('apiserver_flowcontrol_priority_level_request_utilization')
    const histograms = [
      requests.labels('waiting', level),
      requests.labels('executing', level),
      meters.family('apiserver_flowcontrol_priority_level_seat_utilization').labels('executing', level),
      meters.family('apiserver_flowcontrol_demand_seats').labels(level),
    ]
    this.#ratios = new TimedRatios(histograms, nowMs)
    this.#demand = demand
  }

  noted({ waiting, executing, seatsWaiting, seatsInUse }: SetTotals, nowMs: number): void {
    const { queued, seats } = this.capacity
    this.#demand.set(seatsInUse + seatsWaiting, nowMs)
    this.#ratios.advance(nowMs)
    this.#ratios.set(0, waiting / queued)
    this.#ratios.set(1, executing / seats)
    this.#ratios.set(2, seatsInUse / seats)
    this.#ratios.set(3, (seatsInUse + seatsWaiting) / seats)
  }

  /** Before metrics are read. */
  advance(nowMs: number): void {
    this.#ratios.advance(nowMs)
  }
}

const KINDS: readonly RequestKind[] = ['readOnly', 'mutating']

/** The numbers of running and waiting reads and writes. */
export class KindMeter {
  readonly #ratios: TimedRatios
  readonly #counts = { readOnly: { executing: 0, waiting: 0 }, mutating: { executing: 0, waiting: 0 } }
  capacity: Capacity = { queued: 1, seats: 1 }

  constructor(meters: ServerMeters, nowMs: number) {
    const family = meters.family('apiserver_flowcontrol_read_vs_write_current_requests')
    const histograms = KINDS.flatMap((kind) => [family.labels('executing', kind), family.labels('waiting', kind)])
    this.#ratios = new TimedRatios(histograms, nowMs)
  }

  count(kind: RequestKind, phase: 'executing' | 'waiting'): number {
    return this.#counts[kind][phase]
  }

  add(kind: RequestKind, phase: 'executing' | 'waiting', by: number, nowMs: number): void {
    const counts = this.#counts[kind]
    counts[phase] += by
    this.#ratios.advance(nowMs)
    const at = kind === 'readOnly' ? 0 : 2
    this.#ratios.set(at, counts.executing / this.capacity.seats)
    this.#ratios.set(at + 1, counts.waiting / this.capacity.queued)
  }

  /** Before metrics are read. */
  advance(nowMs: number): void {
    this.#ratios.advance(nowMs)
  }
}
