/** Metrics of watches by resource. */
import type { ServerMeters } from '#model/metrics/families.ts'

import type { Representation } from '../registry/representation.ts'

export interface WatchMeter {
  /** This many events were sent together. */
  sent(bytes: number, count: number): void
  /** This many objects were in the initial state. */
  initial(objects: number): void
  /** The initial state was sent completely. */
  listed(scope: string, seconds: number): void
}

interface Watched {
  readonly representation: Representation
  readonly services: { readonly metrics: ServerMeters }
}

const known = new WeakMap<Representation, WatchMeter>()

/** Shared by all watches of a resource in one version. */
export function watchMeterOf({ representation, services }: Watched): WatchMeter {
  let meter = known.get(representation)
  if (meter === undefined) known.set(representation, (meter = createMeter(services.metrics, representation)))
  return meter
}

function createMeter(meters: ServerMeters, { kind: { group, version, plural } }: Representation): WatchMeter {
  const events = meters.family('apiserver_watch_events_total').labels(group, version, plural)
  const sizes = meters.family('apiserver_watch_events_sizes').labels(group, version, plural)
  const listed = meters.family('apiserver_watch_list_duration_seconds')
  const initial = meters.family('apiserver_init_events_total')
  return {
    sent(bytes, count) {
      events.inc(count)
      for (let at = 0; at < count; at++) sizes.observe(bytes / count)
    },
    listed: (scope, seconds) => listed.labels(group, version, plural, scope).observe(seconds),
    initial: (objects) => initial.labels(group, plural).inc(objects),
  }
}
