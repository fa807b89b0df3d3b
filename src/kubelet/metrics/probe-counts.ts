/** `/metrics/probes`: counts and durations of probes. Series of removed containers are deleted. */
import type { Pod } from '#apis/core/v1.ts'
import { createRegistry, DEFAULT_BUCKETS, type Registry } from '#lib/metrics/metrics.ts'
import { createMeters, type Meters } from '#lib/metrics/table.ts'

import type { ProbeKind } from '../pod/events.ts'

export const PROBE_FAMILIES = {
  prober_probe_duration_seconds: `histogram:usual ALPHA [probe_type container pod namespace] Time that a probe takes.`,
  prober_probe_total: `counter BETA [probe_type result container pod namespace pod_uid] Probes of a container, by type and result.`,
} as const

export type ProbeResult = 'successful' | 'failed' | 'unknown'

const RESULTS: readonly ProbeResult[] = ['successful', 'failed', 'unknown']

export class ProbeCounts {
  readonly registry: Registry
  readonly #meters: Meters<typeof PROBE_FAMILIES>

  /** `startedMs` is the start of the process, which is reported as well. */
  constructor(registry: Registry = createRegistry(), startedMs?: number) {
    this.registry = registry
    if (startedMs !== undefined) {
      const name = 'process_start_time_seconds'
      const help = 'Time of the start of the process, in seconds since 1970.'
      registry.callback({ type: 'gauge', name, help, collect: (emit) => emit(startedMs / 1000) })
    }
    this.#meters = createMeters(registry, PROBE_FAMILIES, { usual: DEFAULT_BUCKETS })
  }

  count({ metadata }: Pod, container: string, kind: ProbeKind, { result, seconds }: ProbeOutcome): void {
    const { name = '', namespace = '', uid = '' } = metadata
    this.#meters.family('prober_probe_total').labels(kind, result, container, name, namespace, uid).inc()
    // Durations of failures are omitted, because most are timeouts.
    if (result === 'failed') return
    this.#meters.family('prober_probe_duration_seconds').labels(kind, container, name, namespace).observe(seconds)
  }

  /** The container is no longer probed. */
  forget({ metadata }: Pod, container: string): void {
    const { name = '', namespace = '', uid = '' } = metadata
    for (const kind of ['Startup', 'Liveness', 'Readiness']) {
      this.#meters.family('prober_probe_duration_seconds').remove(kind, container, name, namespace)
      for (const result of RESULTS) {
        this.#meters.family('prober_probe_total').remove(kind, result, container, name, namespace, uid)
      }
    }
  }
}

export interface ProbeOutcome {
  readonly result: ProbeResult
  readonly seconds: number
}
