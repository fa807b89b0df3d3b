/** Metrics of webhooks, under upstream's names. */
import type { Clock } from '#lib/clock.ts'
import type { ServerMeters } from '#model/metrics/families.ts'

import type { Verdict } from './verdict.ts'

export interface WebhookMeter {
  /**
   * Starts the measurement of one call; returns the function that records its result, and whether the request is
   * refused because of it.
   */
  begin(name: string, operation: string): (verdict: Verdict, isRejected: boolean) => void
  /** A webhook failed open: the request continues without its answer. */
  failedOpen(name: string): void
  /** A webhook was skipped because of its match conditions. */
  excluded(name: string, operation: string): void
}

/** Other codes are counted together, because a webhook could return any. */
const MAX_CODE = 600

/** The names of the two types in metrics of match conditions. */
export const CONDITION_TYPES = { admit: 'admit', validating: 'validate' } as const

export function createWebhookMeter(meters: ServerMeters, clock: Clock, type: 'admit' | 'validating'): WebhookMeter {
  const requests = meters.family('apiserver_admission_webhook_request_total')
  const durations = meters.family('apiserver_admission_webhook_admission_duration_seconds')
  const rejections = meters.family('apiserver_admission_webhook_rejection_count')
  const exclusions = meters.family('apiserver_admission_match_condition_exclusions_total')
  const failOpens = meters.family('apiserver_admission_webhook_fail_open_count')
  return {
    begin(name, operation) {
      const startMs = clock.elapsed()
      return (verdict, isRejected) => {
        const rejected = String(isRejected)
        const [code, errorType] = labelsOf(verdict)
        requests.labels(name, type, operation, code, rejected).inc()
        durations.labels(name, type, operation, rejected).observe((clock.elapsed() - startMs) / 1000)
        const isLeft = verdict.outcome === 'unanswered' && verdict.isGivenUp === true
        if (isRejected && !isLeft) rejections.labels(name, type, operation, errorType, code).inc()
      }
    },
    failedOpen: (name) => failOpens.labels(name, type).inc(),
    excluded: (name, operation) => exclusions.labels(name, 'webhook', CONDITION_TYPES[type], operation).inc(),
  }
}

function labelsOf(verdict: Verdict): readonly [code: string, errorType: string] {
  const capped = (code: number): string => String(Math.min(code, MAX_CODE))
  switch (verdict.outcome) {
    case 'allowed':
      return ['200', '']
    case 'denied':
      return [capped(verdict.error.status.code ?? 0), 'no_error']
    case 'unanswered':
      return [capped(verdict.code), 'calling_webhook_error']
    default:
      return ['0', 'apiserver_internal_error']
  }
}
