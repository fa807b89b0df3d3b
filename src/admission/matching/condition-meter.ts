/** Metrics of match conditions: duration and failures. */
import type { Operation } from '#apiserver/registry/admission.ts'
import type { Clock } from '#lib/clock.ts'
import type { ServerMeters } from '#model/metrics/families.ts'

import type { ConditionOutcome } from './conditions.ts'

export interface ConditionMeter {
  /**
   * Called before the conditions of a webhook or policy are evaluated; returns the function that records the result.
   */
  begin(name: string, operation: Operation): (outcome: ConditionOutcome) => void
}

export interface ConditionMeterOptions {
  readonly kind: 'webhook' | 'policy'
  readonly type: string
}

export function createConditionMeter(
  meters: ServerMeters,
  clock: Clock,
  { kind, type }: ConditionMeterOptions,
): ConditionMeter {
  const errors = meters.family('apiserver_admission_match_condition_evaluation_errors_total')
  const seconds = meters.family('apiserver_admission_match_condition_evaluation_seconds')
  return {
    begin(name, operation) {
      const startMs = clock.elapsed()
      return ({ failures }) => {
        if (failures > 0) errors.labels(name, kind, type, operation).inc(failures)
        seconds.labels(name, kind, type, operation).observe((clock.elapsed() - startMs) / 1000)
      }
    },
  }
}
