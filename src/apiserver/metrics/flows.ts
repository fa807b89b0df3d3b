/** Which requests are let through or turned away, and how long they take, by flow schema and priority level. */
import type { Clock } from '#lib/clock.ts'
import type { ServerMeters } from '#model/metrics/families.ts'

import type { FlowClass } from '../filters/flow-classes.ts'

/** What is counted of one flow schema. */
export interface FlowMeter {
  /** A request is let through. Returns what is told when it has been answered. */
  enter(isWatch: boolean): () => void
  reject(): void
}

/** Requests are turned away for one reason: there is no room for more of their kind. */
const REASON = 'concurrency-limit'

export function createFlowMetrics(meters: ServerMeters, clock: Clock): (flow: FlowClass) => FlowMeter {
  const known = new WeakMap<FlowClass, FlowMeter>()
  return (flow) => {
    let meter = known.get(flow)
    if (meter === undefined) known.set(flow, (meter = flowMeter(meters, clock, flow)))
    return meter
  }
}

function flowMeter(meters: ServerMeters, clock: Clock, { name, level }: FlowClass): FlowMeter {
  const dispatched = meters.family('apiserver_flowcontrol_dispatched_requests_total').labels(level, name)
  const executing = meters.family('apiserver_flowcontrol_current_executing_requests').labels(level, name)
  const seats = meters.family('apiserver_flowcontrol_current_executing_seats').labels(level, name)
  const waited = meters.family('apiserver_flowcontrol_request_wait_duration_seconds').labels(level, name, 'true')
  const execution = meters.family('apiserver_flowcontrol_request_execution_seconds')
  const took = { regular: execution.labels(level, name, 'regular'), watch: execution.labels(level, name, 'watch') }
  meters.family('apiserver_flowcontrol_current_inqueue_requests').labels(level, name)
  const rejected = meters.family('apiserver_flowcontrol_rejected_requests_total')
  return {
    enter(isWatch) {
      const startMs = clock.elapsed()
      dispatched.inc()
      executing.inc()
      seats.inc()
      waited.observe(0)
      return () => {
        executing.dec()
        seats.dec()
        took[isWatch ? 'watch' : 'regular'].observe((clock.elapsed() - startMs) / 1000)
      }
    },
    reject: () => rejected.labels(level, name, REASON).inc(),
  }
}
