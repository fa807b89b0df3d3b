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
  ran: () => undefined,
  pluginRan: () => undefined,
  evaluated: () => undefined,
  permitWaited: () => undefined,
  queued: () => undefined,
  scheduledAfterFlush: () => undefined,
  hinted: () => undefined,
  handled: () => undefined,
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
    ...registerFramework(registry),
    ...registerQueue(registry),
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

function registerFramework(registry: Registry): Pick<Meter, 'ran' | 'pluginRan' | 'evaluated' | 'permitWaited'> {
  const points = registry.histogram({
    name: 'scheduler_framework_extension_point_duration_seconds',
    help: 'Latency for running all plugins of a specific extension point.',
    labels: ['extension_point', 'status', 'profile'],
    buckets: exponentialBuckets(0.0001, 2, 12),
    stability: 'STABLE',
  })
  const plugins = registry.histogram({
    name: 'scheduler_plugin_execution_duration_seconds',
    help: 'Duration for running a plugin at a specific extension point.',
    labels: ['plugin', 'extension_point', 'status'],
    buckets: exponentialBuckets(0.000_01, 1.5, 20),
    stability: 'ALPHA',
  })
  const asked = registry.counter({
    name: 'scheduler_plugin_evaluation_total',
    help: 'Number of attempts to schedule pods by each plugin and the extension point (available only in PreFilter, Filter, PreScore, and Score).',
    labels: ['plugin', 'extension_point', 'profile'],
    stability: 'BETA',
  })
  const waited = registry.histogram({
    name: 'scheduler_permit_wait_duration_seconds',
    help: 'Duration of waiting on permit.',
    labels: ['result'],
    buckets: exponentialBuckets(0.001, 2, 15),
    stability: 'BETA',
  })
  const ran = remembered((point, status, profile) => points.labels(point, status, profile))
  const evaluated = remembered((plugin, point, profile) => asked.labels(plugin, point, profile))
  return {
    ran: (point, status, profile, tookMs) => ran(point, status, profile).observe(tookMs / 1000),
    pluginRan: (point, plugin, status, tookMs) => plugins.labels(plugin, point, status).observe(tookMs / 1000),
    evaluated: (plugin, point, profile, times) => evaluated(plugin, point, profile).inc(times),
    permitWaited: (result, tookMs) => waited.labels(result).observe(tookMs / 1000),
  }
}

/** Found without making a key of the labels: it is looked for many times a decision. */
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

function registerQueue(registry: Registry): Pick<Meter, 'queued' | 'scheduledAfterFlush' | 'hinted' | 'handled'> {
  const incoming = registry.counter({
    name: 'scheduler_queue_incoming_pods_total',
    help: 'Number of pods added to scheduling queues by event and queue type.',
    labels: ['queue', 'event'],
    stability: 'STABLE',
  })
  const flushed = registry
    .counter({
      name: 'scheduler_pod_scheduled_after_flush_total',
      help: 'Number of pods that were successfully scheduled after being flushed from unschedulablePods due to timeout. This metric helps detect potential queueing hint misconfigurations or event handling issues.',
      stability: 'ALPHA',
    })
    .labels()
  const hints = registry.histogram({
    name: 'scheduler_queueing_hint_execution_duration_seconds',
    help: 'Duration for running a queueing hint function of a plugin.',
    labels: ['plugin', 'event', 'hint'],
    buckets: exponentialBuckets(0.000_01, 1.5, 20),
    stability: 'ALPHA',
  })
  const events = registry.histogram({
    name: 'scheduler_event_handling_duration_seconds',
    help: 'Event handling latency in seconds.',
    labels: ['event'],
    buckets: exponentialBuckets(0.0001, 2, 12),
    stability: 'ALPHA',
  })
  return {
    queued: (queue, event) => incoming.labels(queue, event).inc(),
    scheduledAfterFlush: () => flushed.inc(),
    hinted: (plugin, event, hint, tookMs) => hints.labels(plugin, event, hint).observe(tookMs / 1000),
    handled: (event, tookMs) => events.labels(event).observe(tookMs / 1000),
  }
}

type Watched = Parameters<SchedulerMeters['watch']>[0]

/** What tells the present: how many of what there are when somebody asks. */
const PRESENT: readonly {
  readonly name: string
  readonly help: string
  readonly labels: readonly string[]
  readonly stability: 'ALPHA' | 'BETA' | 'STABLE'
  readonly counts: (watched: Watched) => Iterable<readonly [count: number, ...labels: string[]]>
}[] = [
  {
    name: 'scheduler_pending_pods',
    help: "Number of pending pods, by the queue type. 'active' means number of pods in activeQ; 'backoff' means number of pods in backoffQ; 'unschedulable' means number of pods in unschedulablePods that the scheduler attempted to schedule and failed; 'gated' is the number of unschedulable pods that the scheduler never attempted to schedule because they are gated.",
    labels: ['queue'],
    stability: 'STABLE',
    counts: ({ queue }) => Object.entries(queue.sizes).map(([name, count]) => [count, name]),
  },
  {
    name: 'scheduler_cache_size',
    help: 'Number of nodes, pods, and assumed (bound) pods in the scheduler cache.',
    labels: ['type'],
    stability: 'ALPHA',
    counts: ({ cluster: { nodes, podCount, assumedCount } }) => [
      [nodes.length, 'nodes'],
      [podCount, 'pods'],
      [assumedCount, 'assumed_pods'],
    ],
  },
  {
    name: 'scheduler_inflight_events',
    help: 'Number of events currently tracked in the scheduling queue.',
    labels: ['event'],
    stability: 'ALPHA',
    counts: ({ queue }) => Array.from(queue.inFlight(), ([event, count]) => [count, event]),
  },
  {
    name: 'scheduler_goroutines',
    help: 'Number of running goroutines split by the work they do such as binding.',
    labels: ['operation'],
    stability: 'BETA',
    counts: ({ binding }) => [[binding(), 'binding']],
  },
  {
    name: 'scheduler_unschedulable_pods',
    help: 'The number of unschedulable pods broken down by plugin name. A pod will increment the gauge for all plugins that caused it to not schedule and so this metric have meaning only when broken down by plugin.',
    labels: ['plugin', 'profile'],
    stability: 'BETA',
    counts: ({ queue }) => queue.rejections().map(({ plugin, profile, count }) => [count, plugin, profile]),
  },
]

function registerPresent(registry: Registry): SchedulerMeters['watch'] {
  let watched: Watched | undefined
  for (const { counts, ...family } of PRESENT) {
    registry.callback({
      ...family,
      type: 'gauge',
      collect(emit) {
        for (const [count, ...labels] of watched === undefined ? [] : counts(watched)) emit(count, ...labels)
      },
    })
  }
  return (parts) => void (watched = parts)
}
