/** The metrics of work queues under upstream's names (component-base/metrics/prometheus/workqueue, v1.36). */

import type { UnfinishedWork, WorkQueueMetrics } from '../work-queue.ts'
import { exponentialBuckets, type Registry } from './metrics.ts'

/** Declares the families, once for a registry, and gives the handles for the queue of a name. */
export function registerWorkQueueMetrics(registry: Registry): (name: string) => WorkQueueMetrics {
  const shared = { labels: ['name'], stability: 'BETA' } as const
  const buckets = exponentialBuckets(10e-9, 10, 10)
  const depth = registry.gauge({ ...shared, name: 'workqueue_depth', help: 'Current depth of workqueue' })
  const adds = registry.counter({
    ...shared,
    name: 'workqueue_adds_total',
    help: 'Total number of adds handled by workqueue',
  })
  const queueSeconds = registry.histogram({
    ...shared,
    name: 'workqueue_queue_duration_seconds',
    help: 'How long in seconds an item stays in workqueue before being requested.',
    buckets,
  })
  const workSeconds = registry.histogram({
    ...shared,
    name: 'workqueue_work_duration_seconds',
    help: 'How long in seconds processing an item from workqueue takes.',
    buckets,
  })
  const retries = registry.counter({
    ...shared,
    name: 'workqueue_retries_total',
    help: 'Total number of retries handled by workqueue',
  })
  const watch = registerUnfinished(registry)
  return (name) => ({
    depth: depth.labels(name),
    adds: adds.labels(name),
    queueSeconds: queueSeconds.labels(name),
    workSeconds: workSeconds.labels(name),
    retries: retries.labels(name),
    watch: (unfinished) => watch(name, unfinished),
  })
}

/** The two metrics that are computed at scrape time. A later queue of the same name replaces an earlier one. */
function registerUnfinished(registry: Registry): (name: string, unfinished: () => UnfinishedWork) => void {
  const queues = new Map<string, () => UnfinishedWork>()
  const declare = (name: string, help: string, value: (work: UnfinishedWork) => number): void =>
    registry.callback({
      type: 'gauge',
      name,
      help,
      labels: ['name'],
      stability: 'BETA',
      collect(emit) {
        for (const [queue, unfinished] of queues) emit(value(unfinished()), queue)
      },
    })
  declare(
    'workqueue_unfinished_work_seconds',
    "How many seconds of work has done that is in progress and hasn't been observed by work_duration. " +
      'Large values indicate stuck threads. One can deduce the number of stuck threads by observing the rate at which this increases.',
    (work) => work.totalSeconds,
  )
  declare(
    'workqueue_longest_running_processor_seconds',
    'How many seconds has the longest running processor for workqueue been running.',
    (work) => work.longestSeconds,
  )
  return (name, unfinished) => void queues.set(name, unfinished)
}
