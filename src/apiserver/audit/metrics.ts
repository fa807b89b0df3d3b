/** Metrics of auditing, under upstream's names. */
import type { ServerMeters } from '#model/metrics/families.ts'

import type { Level } from './policy.ts'

export interface AuditMetrics {
  readonly event: () => void
  readonly level: (level: Level) => void
  readonly lost: (plugin: string, events: number) => void
  readonly rejected: () => void
}

export function createAuditMetrics(meters: ServerMeters): AuditMetrics {
  const event = meters.family('apiserver_audit_event_total').labels()
  const refusal = meters.family('apiserver_audit_requests_rejected_total').labels()
  const errors = meters.family('apiserver_audit_error_total')
  const levels = meters.family('apiserver_audit_level_total')
  return {
    event: () => event.inc(),
    level: (level) => levels.labels(level).inc(),
    lost: (plugin, count) => errors.labels(plugin).inc(count),
    rejected: () => refusal.inc(),
  }
}
