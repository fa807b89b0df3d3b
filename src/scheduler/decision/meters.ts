/** Metrics of the scheduler, with upstream's names. Gauges are computed when they are read. */

import { exponentialBuckets, type Registry } from '#lib/metrics/metrics.ts'
import { createMeters, type Meters, type Words } from '#lib/metrics/table.ts'

import type { Cluster } from '../cluster/cluster.ts'
import type { Meter } from '../framework/framework.ts'
import type { SchedulingQueue } from '../queue/queue.ts'

export interface SchedulerMeters extends Meter {
  /** Sets the source of the gauges. */
  watch(parts: { readonly queue: SchedulingQueue; readonly cluster: Cluster; readonly binding: () => number }): void
}

type BucketName = Words<'attempt long plugin podAttempts point victims'>[number]

export const SCHEDULER_BUCKETS: Readonly<Record<BucketName, readonly number[]>> = {
  attempt: exponentialBuckets(0.001, 2, 15),
  long: exponentialBuckets(0.01, 2, 20),
  plugin: exponentialBuckets(0.000_01, 1.5, 20),
  podAttempts: exponentialBuckets(1, 2, 5),
  point: exponentialBuckets(0.0001, 2, 12),
  victims: exponentialBuckets(1, 2, 7),
}

export const SCHEDULER_FAMILIES = {
  scheduler_cache_size: `gauge ALPHA [type] Nodes, pods and assumed pods in the cache of the scheduler.`,
  scheduler_event_handling_duration_seconds: `histogram:point ALPHA [event] Time to handle an event of the cluster.`,
  scheduler_framework_extension_point_duration_seconds: `histogram:point STABLE [extension_point status profile] Time that all plugins of an extension point take together.`,
  scheduler_goroutines: `gauge BETA [operation] Tasks that run concurrently, by their kind.`,
  scheduler_inflight_events: `gauge ALPHA [event] Events that the queue keeps for pods being scheduled.`,
  scheduler_pending_pods: `gauge STABLE [queue] Pods that wait, by queue: active, backoff, unschedulable or gated.`,
  scheduler_permit_wait_duration_seconds: `histogram:attempt BETA [result] Time that pods wait for permission to bind.`,
  scheduler_plugin_evaluation_total: `counter BETA [plugin extension_point profile] Runs of a plugin in PreFilter, Filter, PreScore and Score.`,
  scheduler_plugin_execution_duration_seconds: `histogram:plugin ALPHA [plugin extension_point status] Time that a plugin takes at an extension point.`,
  scheduler_pod_scheduled_after_flush_total: `counter ALPHA [] Pods that were scheduled only after they left the unschedulable pods by timeout. Growth suggests a missing queueing hint.`,
  scheduler_pod_scheduling_attempts: `histogram:podAttempts STABLE [] Attempts until a pod is scheduled.`,
  scheduler_pod_scheduling_sli_duration_seconds: `histogram:long BETA [attempts] Time from the moment a pod enters the queue until it is scheduled, over all attempts.`,
  scheduler_preemption_attempts_total: `counter STABLE [] Attempts to preempt pods.`,
  scheduler_preemption_goroutines_duration_seconds: `histogram:long ALPHA [result] Time that an asynchronous preemption takes.`,
  scheduler_preemption_goroutines_execution_total: `counter ALPHA [result] Asynchronous preemptions, by result.`,
  scheduler_preemption_victims: `histogram:victims STABLE [] Pods chosen by each preemption.`,
  scheduler_queue_incoming_pods_total: `counter STABLE [queue event] Pods added to a queue, by queue and event.`,
  scheduler_queueing_hint_execution_duration_seconds: `histogram:plugin ALPHA [plugin event hint] Time that a queueing hint of a plugin takes.`,
  scheduler_schedule_attempts_total: `counter STABLE [result profile] Attempts to schedule pods, by result: scheduled, unschedulable, or error for a failure of the scheduler.`,
  scheduler_scheduling_algorithm_duration_seconds: `histogram:attempt ALPHA [] Time to choose a node.`,
  scheduler_scheduling_attempt_duration_seconds: `histogram:attempt STABLE [result profile] Time of a whole attempt: the choice of a node and the binding.`,
  scheduler_unschedulable_pods: `gauge BETA [plugin profile] Pods that cannot be scheduled, counted once for each plugin that rejects them.`,
} as const

type Families = Meters<typeof SCHEDULER_FAMILIES>

/** A Meter that does nothing. */
export const UNMETERED: Meter = {
  decided: () => undefined,
  attempted: () => undefined,
  scheduled: () => undefined,
  preemptionTried: () => undefined,
  preemptionChosen: () => undefined,
  preemptionDone: () => undefined,
  ran: () => undefined,
  pluginRan: () => undefined,
  evaluated: () => undefined,
  permitWaited: () => undefined,
  queued: () => undefined,
  scheduledAfterFlush: () => undefined,
  hinted: () => undefined,
  handled: () => undefined,
}

/** The highest value of the `attempts` label; more attempts count as this. */
const MANY_ATTEMPTS = 15

/** Declares the families; call once for each registry. */
export function registerSchedulerMetrics(registry: Registry): SchedulerMeters {
  const meters = createMeters<typeof SCHEDULER_FAMILIES, BucketName>(registry, SCHEDULER_FAMILIES, SCHEDULER_BUCKETS)
  const attempts = meters.family('scheduler_schedule_attempts_total')
  const attemptSeconds = meters.family('scheduler_scheduling_attempt_duration_seconds')
  const algorithmSeconds = meters.family('scheduler_scheduling_algorithm_duration_seconds').labels()
  return {
    ...registerPreemption(meters),
    ...registerFramework(meters),
    ...registerQueue(meters),
    scheduled: registerScheduled(meters),
    watch: registerGauges(meters),
    decided: (tookMs) => algorithmSeconds.observe(tookMs / 1000),
    attempted({ result, profile, tookMs }) {
      attempts.labels(result, profile).inc()
      attemptSeconds.labels(result, profile).observe(tookMs / 1000)
    },
  }
}

function registerScheduled(meters: Families): Meter['scheduled'] {
  const podAttempts = meters.family('scheduler_pod_scheduling_attempts').labels()
  const sliSeconds = meters.family('scheduler_pod_scheduling_sli_duration_seconds')
  return (count, tookMs) => {
    podAttempts.observe(count)
    sliSeconds.labels(count > MANY_ATTEMPTS ? `${MANY_ATTEMPTS}+` : String(count)).observe(tookMs / 1000)
  }
}

function registerPreemption(meters: Families): Pick<Meter, 'preemptionTried' | 'preemptionChosen' | 'preemptionDone'> {
  const tried = meters.family('scheduler_preemption_attempts_total').labels()
  const victims = meters.family('scheduler_preemption_victims').labels()
  const seconds = meters.family('scheduler_preemption_goroutines_duration_seconds')
  const done = meters.family('scheduler_preemption_goroutines_execution_total')
  return {
    preemptionTried: () => tried.inc(),
    preemptionChosen: (count) => victims.observe(count),
    preemptionDone(result, tookMs) {
      seconds.labels(result).observe(tookMs / 1000)
      done.labels(result).inc()
    },
  }
}

function registerFramework(meters: Families): Pick<Meter, 'ran' | 'pluginRan' | 'evaluated' | 'permitWaited'> {
  const pointDurations = meters.family('scheduler_framework_extension_point_duration_seconds')
  const plugins = meters.family('scheduler_plugin_execution_duration_seconds')
  const evaluations = meters.family('scheduler_plugin_evaluation_total')
  const waited = meters.family('scheduler_permit_wait_duration_seconds')
  const ran = remembered((point, status, profile) => pointDurations.labels(point, status, profile))
  const evaluated = remembered((plugin, point, profile) => evaluations.labels(plugin, point, profile))
  return {
    ran: (point, status, profile, tookMs) => ran(point, status, profile).observe(tookMs / 1000),
    pluginRan: (point, plugin, status, tookMs) => plugins.labels(plugin, point, status).observe(tookMs / 1000),
    evaluated: (plugin, point, profile, times) => evaluated(plugin, point, profile).inc(times),
    permitWaited: (result, tookMs) => waited.labels(result).observe(tookMs / 1000),
  }
}

/** Finds a series without building a label key: this runs many times in a decision. */
function remembered<S>(make: (a: string, b: string, c: string) => S): (a: string, b: string, c: string) => S {
  const known = new Map<string, Map<string, Map<string, S>>>()
  return (a, b, c) => {
    const found = known.get(a)?.get(b)?.get(c)
    if (found !== undefined) return found
    const made = make(a, b, c)
    const ofA = known.get(a) ?? new Map<string, Map<string, S>>()
    const ofB = ofA.get(b) ?? new Map<string, S>()
    known.set(a, ofA.set(b, ofB.set(c, made)))
    return made
  }
}

function registerQueue(meters: Families): Pick<Meter, 'queued' | 'scheduledAfterFlush' | 'hinted' | 'handled'> {
  const incoming = meters.family('scheduler_queue_incoming_pods_total')
  const flushed = meters.family('scheduler_pod_scheduled_after_flush_total').labels()
  const hints = meters.family('scheduler_queueing_hint_execution_duration_seconds')
  const events = meters.family('scheduler_event_handling_duration_seconds')
  return {
    queued: (queue, event) => incoming.labels(queue, event).inc(),
    scheduledAfterFlush: () => flushed.inc(),
    hinted: (plugin, event, hint, tookMs) => hints.labels(plugin, event, hint).observe(tookMs / 1000),
    handled: (event, tookMs) => events.labels(event).observe(tookMs / 1000),
  }
}

/** Gauges, computed on scrape. */
function registerGauges(meters: Families): SchedulerMeters['watch'] {
  let sources: Parameters<SchedulerMeters['watch']>[0] | undefined
  meters.collect('scheduler_pending_pods', (emit) => {
    for (const [queue, count] of Object.entries(sources?.queue.sizes ?? {})) emit(count, queue)
  })
  meters.collect('scheduler_cache_size', (emit) => {
    if (sources === undefined) return
    emit(sources.cluster.nodes.length, 'nodes')
    emit(sources.cluster.podCount, 'pods')
    emit(sources.cluster.assumedCount, 'assumed_pods')
  })
  meters.collect('scheduler_inflight_events', (emit) => {
    for (const [event, count] of sources?.queue.inFlight() ?? []) emit(count, event)
  })
  meters.collect('scheduler_goroutines', (emit) => {
    if (sources !== undefined) emit(sources.binding(), 'binding')
  })
  meters.collect('scheduler_unschedulable_pods', (emit) => {
    for (const { plugin, profile, count } of sources?.queue.rejections() ?? []) emit(count, plugin, profile)
  })
  return (parts) => void (sources = parts)
}
