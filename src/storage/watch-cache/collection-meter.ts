/** Metrics of one collection of the watch cache. */
import type { Counter } from '#lib/metrics/metrics.ts'
import type { ServerMeters } from '#model/metrics/families.ts'

export interface CollectionMeter {
  /** An event was received from the store. */
  readonly received: Counter
  /** The event was applied. */
  readonly applied: Counter
  /** The event was delivered to watchers. */
  readonly dispatched: Counter
  /** The state was listed from the store. */
  readonly initialized: Counter
  /** The state was compared with the store's. */
  checked(isSame: boolean): void
}

export function createCollectionMeter(
  meters: ServerMeters,
  { group, resource }: { readonly group: string; readonly resource: string },
): CollectionMeter {
  const checks = meters.family('apiserver_storage_consistency_checks_total')
  return {
    received: meters.family('apiserver_storage_events_received_total').labels(group, resource),
    applied: meters.family('apiserver_watch_cache_events_received_total').labels(group, resource),
    dispatched: meters.family('apiserver_watch_cache_events_dispatched_total').labels(group, resource),
    initialized: meters.family('apiserver_watch_cache_initializations_total').labels(group, resource),
    checked: (isSame) => checks.labels(group, resource, isSame ? 'success' : 'failure').inc(),
  }
}
