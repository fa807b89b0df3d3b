/** `/metrics/probes`: how often containers were probed and how that went. What has gone is not counted any more. */
import type { Pod } from '#apis/core/v1.ts'
import { createMeters, type Meters } from '#lib/metrics-table.ts'
import { createRegistry, DEFAULT_BUCKETS, type Registry } from '#lib/metrics.ts'

import type { ProbeKind } from '../kubelet-notes.ts'

export const PROBE_FAMILIES = {
  prober_probe_duration_seconds: [
    'histogram',
    'ALPHA',
    'probe_type container pod namespace',
    'Duration in seconds for a probe response.',
    { buckets: 'usual' },
  ],
  prober_probe_total: [
    'counter',
    'BETA',
    'probe_type result container pod namespace pod_uid',
    'Cumulative number of a liveness, readiness or startup probe for a container by result.',
  ],
} as const

export type ProbeResult = 'successful' | 'failed' | 'unknown'

const RESULTS: readonly ProbeResult[] = ['successful', 'failed', 'unknown']

export class ProbeCounts {
  readonly registry: Registry
  readonly #meters: Meters<typeof PROBE_FAMILIES>

  /** `startedMs`: of the process; told with the rest. */
  constructor(registry: Registry = createRegistry(), startedMs?: number) {
    this.registry = registry
    if (startedMs !== undefined) {
      const name = 'process_start_time_seconds'
      const help = 'Start time of the process since unix epoch in seconds.'
      registry.callback({ type: 'gauge', name, help, collect: (emit) => emit(startedMs / 1000) })
    }
    this.#meters = createMeters(registry, PROBE_FAMILIES, { usual: DEFAULT_BUCKETS })
  }

  count({ metadata }: Pod, container: string, kind: ProbeKind, { result, seconds }: ProbeOutcome): void {
    const { name = '', namespace = '', uid = '' } = metadata
    this.#meters.family('prober_probe_total').labels(kind, result, container, name, namespace, uid).inc()
    // How long a failure takes says nothing: most of them time out.
    if (result === 'failed') return
    this.#meters.family('prober_probe_duration_seconds').labels(kind, container, name, namespace).observe(seconds)
  }

  /** The container is not probed any more. */
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
