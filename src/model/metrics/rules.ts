/**
 * Decides which metric families and label values are visible. Users can disable families, and deprecated ones are
 * hidden.
 */
import type { MetricOptions, RegistryRules, Stability } from '#lib/metrics/metrics.ts'

import type { ServerMeters } from './families.ts'

export interface MetricSettings {
  /** `--disabled-metrics`. */
  readonly disabled: readonly string[]
  /** `--show-hidden-metrics-for-version` names the previous release: its hidden families are shown once more. */
  readonly showsHidden: boolean
  /** `--allow-metric-labels`: the comma-separated allowed values by `metric,label`. */
  readonly allowed: ReadonlyMap<string, string>
}

export const USUAL_METRICS: MetricSettings = { disabled: [], showsHidden: false, allowed: new Map() }

/** The current minor release of v1. */
const MINOR = 36

/** The number of releases for which a deprecated family is shown. */
const SHOWN_RELEASES: Readonly<Record<Stability, number>> = { STABLE: 3, BETA: 1, ALPHA: 0, INTERNAL: 0 }

export interface MetricRules extends RegistryRules {
  readonly isHidden: NonNullable<RegistryRules['isHidden']>
  readonly counts: { hidden: number; readonly disabled: number; unexpected: number }
}

export function createMetricRules({ disabled, showsHidden, allowed }: MetricSettings): MetricRules {
  const off = new Set(disabled)
  const values = new Map([...allowed].map(([key, list]) => [key, new Set(list.split(','))] as const))
  const counts = { hidden: 0, disabled: off.size, unexpected: 0 }
  return {
    counts,
    isHidden(options) {
      const isOld = !showsHidden && isPast(options)
      if (isOld) counts.hidden++
      return isOld || off.has(options.name)
    },
    allowedValues: (metric, label) => values.get(`${metric},${label}`),
    onUnexpected: () => void counts.unexpected++,
  }
}

function isPast({ deprecatedSince, stability = 'ALPHA' }: MetricOptions<readonly string[]>): boolean {
  if (deprecatedSince === undefined) return false
  return Number(deprecatedSince.split('.')[1]) + SHOWN_RELEASES[stability] <= MINOR
}

/** Metrics about the families themselves. */
export function registerMetaMetrics(meters: ServerMeters, { counts }: MetricRules): void {
  meters.collect('disabled_metrics_total', (emit) => emit(counts.disabled))
  meters.collect('hidden_metrics_total', (emit) => emit(counts.hidden))
  meters.collect('cardinality_enforcement_unexpected_categorizations_total', (emit) => emit(counts.unexpected))
  meters.collect('registered_metrics_total', (emit) => {
    const totals = new Map<string, { readonly stability: Stability; readonly since: string; count: number }>()
    for (const { stability, deprecatedSince: since = '' } of meters.registry.declared()) {
      if (stability === undefined) continue
      const key = `${stability} ${since}`
      const total = totals.get(key) ?? { stability, since, count: 0 }
      total.count++
      totals.set(key, total)
    }
    for (const { stability, since, count } of totals.values()) emit(count, stability, since)
  })
}
