/** What is counted of a scheduler, under upstream's names. What tells the present is looked up when it is asked for. */
import { exponentialBuckets, type Registry } from '#lib/metrics.ts'

import type { Cluster } from './cluster.ts'
import type { Meter } from './framework.ts'
import type { SchedulingQueue } from './queue.ts'

export interface SchedulerMeters extends Meter {
  /** Whose present is told from now on. */
  watch(parts: { readonly queue: SchedulingQueue; readonly cluster: Cluster; readonly binding: () => number }): void
}

/** Where nobody asks. */
export const UNMETERED: Meter = {
  decided: () => undefined,
  attempted: () => undefined,
  scheduled: () => undefined,
  preemptionTried: () => undefined,
  preemptionChosen: () => undefined,
  preemptionDone: () => undefined,
}

/** Attempts beyond are told together. */
const MANY_ATTEMPTS = 15

/** Declares the families, once for a registry. */
export function registerSchedulerMetrics(registry: Registry): SchedulerMeters {
  const attempts = registry.counter({
    name: 'scheduler_schedule_attempts_total',
    help: "Number of attempts to schedule pods, by the result. 'unschedulable' means a pod could not be scheduled, while 'error' means an internal scheduler problem.",
    labels: ['result', 'profile'],
    stability: 'STABLE',
  })
  const attemptSeconds = registry.histogram({
    name: 'scheduler_scheduling_attempt_duration_seconds',
    help: 'Scheduling attempt latency in seconds (scheduling algorithm + binding)',
    labels: ['result', 'profile'],
    buckets: exponentialBuckets(0.001, 2, 15),
    stability: 'STABLE',
  })
  const algorithmSeconds = registry
    .histogram({
      name: 'scheduler_scheduling_algorithm_duration_seconds',
      help: 'Scheduling algorithm latency in seconds',
      buckets: exponentialBuckets(0.001, 2, 15),
      stability: 'ALPHA',
    })
    .labels()
  const watch = registerPresent(registry)
  return {
    ...registerPreemption(registry),
    scheduled: registerScheduled(registry),
    watch,
    decided: (tookMs) => algorithmSeconds.observe(tookMs / 1000),
    attempted({ result, profile, tookMs }) {
      attempts.labels(result, profile).inc()
      attemptSeconds.labels(result, profile).observe(tookMs / 1000)
    },
  }
}

function registerScheduled(registry: Registry): Meter['scheduled'] {
  const podAttempts = registry
    .histogram({
      name: 'scheduler_pod_scheduling_attempts',
      help: 'Number of attempts to successfully schedule a pod.',
      buckets: exponentialBuckets(1, 2, 5),
      stability: 'STABLE',
    })
    .labels()
  const sliSeconds = registry.histogram({
    name: 'scheduler_pod_scheduling_sli_duration_seconds',
    help: 'E2e latency for a pod being scheduled, from the time the pod enters the scheduling queue and might involve multiple scheduling attempts.',
    labels: ['attempts'],
    buckets: exponentialBuckets(0.01, 2, 20),
    stability: 'BETA',
  })
  return (count, tookMs) => {
    podAttempts.observe(count)
    sliSeconds.labels(count > MANY_ATTEMPTS ? `${MANY_ATTEMPTS}+` : String(count)).observe(tookMs / 1000)
  }
}

function registerPreemption(
  registry: Registry,
): Pick<Meter, 'preemptionTried' | 'preemptionChosen' | 'preemptionDone'> {
  const tried = registry
    .counter({
      name: 'scheduler_preemption_attempts_total',
      help: 'Total preemption attempts in the cluster till now',
      stability: 'STABLE',
    })
    .labels()
  const victims = registry
    .histogram({
      name: 'scheduler_preemption_victims',
      help: 'Number of selected preemption victims',
      buckets: exponentialBuckets(1, 2, 7),
      stability: 'STABLE',
    })
    .labels()
  const seconds = registry.histogram({
    name: 'scheduler_preemption_goroutines_duration_seconds',
    help: 'Duration in seconds for running goroutines for the preemption.',
    labels: ['result'],
    buckets: exponentialBuckets(0.01, 2, 20),
    stability: 'ALPHA',
  })
  const done = registry.counter({
    name: 'scheduler_preemption_goroutines_execution_total',
    help: 'Number of preemption goroutines executed.',
    labels: ['result'],
    stability: 'ALPHA',
  })
  return {
    preemptionTried: () => tried.inc(),
    preemptionChosen: (count) => victims.observe(count),
    preemptionDone(result, tookMs) {
      seconds.labels(result).observe(tookMs / 1000)
      done.labels(result).inc()
    },
  }
}

function registerPresent(registry: Registry): SchedulerMeters['watch'] {
  let watched: Parameters<SchedulerMeters['watch']>[0] | undefined
  registry.callback({
    type: 'gauge',
    name: 'scheduler_pending_pods',
    help: "Number of pending pods, by the queue type. 'active' means number of pods in activeQ; 'backoff' means number of pods in backoffQ; 'unschedulable' means number of pods in unschedulablePods that the scheduler attempted to schedule and failed; 'gated' is the number of unschedulable pods that the scheduler never attempted to schedule because they are gated.",
    labels: ['queue'],
    stability: 'STABLE',
    collect(emit) {
      for (const [queue, count] of Object.entries(watched?.queue.sizes ?? {})) emit(count, queue)
    },
  })
  registry.callback({
    type: 'gauge',
    name: 'scheduler_cache_size',
    help: 'Number of nodes, pods, and assumed (bound) pods in the scheduler cache.',
    labels: ['type'],
    stability: 'ALPHA',
    collect(emit) {
      if (watched === undefined) return
      const { nodes, podCount, assumedCount } = watched.cluster
      emit(nodes.length, 'nodes')
      emit(podCount, 'pods')
      emit(assumedCount, 'assumed_pods')
    },
  })
  registry.callback({
    type: 'gauge',
    name: 'scheduler_goroutines',
    help: 'Number of running goroutines split by the work they do such as binding.',
    labels: ['operation'],
    stability: 'BETA',
    collect: (emit) => emit(watched?.binding() ?? 0, 'binding'),
  })
  registry.callback({
    type: 'gauge',
    name: 'scheduler_unschedulable_pods',
    help: 'The number of unschedulable pods broken down by plugin name. A pod will increment the gauge for all plugins that caused it to not schedule and so this metric have meaning only when broken down by plugin.',
    labels: ['plugin', 'profile'],
    stability: 'BETA',
    collect(emit) {
      for (const { plugin, profile, count } of watched?.queue.rejections() ?? []) emit(count, plugin, profile)
    },
  })
  return (parts) => void (watched = parts)
}
