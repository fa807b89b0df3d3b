/** What is counted of one collection of the watch cache. */
import type { Counter } from '#lib/metrics.ts'
import type { ServerMeters } from '#model/metrics/families.ts'

export interface CollectionMeter {
  /** A change came from the store. */
  readonly received: Counter
  /** And was taken in. */
  readonly applied: Counter
  /** And handed to those who watch. */
  readonly dispatched: Counter
  /** The state was read from the store, as a whole. */
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
