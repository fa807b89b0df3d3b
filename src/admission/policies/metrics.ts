/** Metrics of policies: invocations, results and durations. */
import type { Clock } from '#lib/clock.ts'
import type { Histogram } from '#lib/metrics/metrics.ts'
import type { ServerMeters } from '#model/metrics/families.ts'

/** The measurements of one expression. */
export interface Observed {
  readonly isDenied: boolean
  readonly isFault: boolean
  readonly message: string
  readonly elapsedMs: number
}

/** The durations of compiling and evaluating expressions. */
export interface ExpressionMeter {
  compiled<T>(work: () => T): T
  evaluated<T>(work: () => T): T
}

export function createExpressionMeter(meters: ServerMeters, clock: Clock): ExpressionMeter {
  const measuring = (histogram: Histogram) => {
    return <T>(work: () => T): T => {
      const startMs = clock.elapsed()
      try {
        return work()
      } finally {
        histogram.observe((clock.elapsed() - startMs) / 1000)
      }
    }
  }
  return {
    compiled: measuring(meters.family('apiserver_cel_compilation_duration_seconds').labels()),
    evaluated: measuring(meters.family('apiserver_cel_evaluation_duration_seconds').labels()),
  }
}

export interface ValidationMeter {
  observe(policy: string, binding: string, observed: Observed, action: string): void
}

export function createValidationMeter(meters: ServerMeters): ValidationMeter {
  const total = meters.family('apiserver_validating_admission_policy_check_total')
  const duration = meters.family('apiserver_validating_admission_policy_check_duration_seconds')
  return {
    observe(policy, binding, observed, action) {
      const labels = [policy, binding, errorType(observed.message), action] as const
      total.labels(...labels).inc()
      duration.labels(...labels).observe(observed.elapsedMs / 1000)
    },
  }
}

export interface MutationMeter {
  observe(policy: string, binding: string, elapsedMs: number, error: string | undefined): void
}

export function createMutationMeter(meters: ServerMeters): MutationMeter {
  const total = meters.family('apiserver_mutating_admission_policy_check_total')
  const duration = meters.family('apiserver_mutating_admission_policy_check_duration_seconds')
  return {
    observe(policy, binding, elapsedMs, error) {
      const labels = [policy, binding, error === undefined ? 'no_error' : errorType(error)] as const
      total.labels(...labels).inc()
      duration.labels(...labels).observe(elapsedMs / 1000)
    },
  }
}

/** Classified by the text, as upstream: a refusal counts as an error too. */
function errorType(message: string): string {
  if (message.startsWith('compilation')) return 'compile_error'
  if (message.startsWith('validation failed due to running out of cost budget')) return 'out_of_budget'
  return 'invalid_error'
}
