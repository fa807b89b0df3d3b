/** What auditing costs and loses, under upstream's metric names. */
import type { Registry } from '#lib/metrics.ts'

import type { Level } from './policy.ts'

export interface AuditMetrics {
  readonly event: () => void
  readonly level: (level: Level) => void
  readonly lost: (plugin: string, events: number) => void
  readonly rejected: () => void
}

export function createAuditMetrics(registry: Registry): AuditMetrics {
  const events = registry.counter({
    name: 'apiserver_audit_event_total',
    help: 'Audit events that were made and handed to where they are kept.',
    stability: 'ALPHA',
    labels: [],
  })
  const errors = registry.counter({
    name: 'apiserver_audit_error_total',
    help: 'Audit events that could not be kept, by the plugin that failed.',
    stability: 'ALPHA',
    labels: ['plugin'],
  })
  const levels = registry.counter({
    name: 'apiserver_audit_level_total',
    help: 'Requests by the audit level the policy has for them.',
    stability: 'ALPHA',
    labels: ['level'],
  })
  const rejected = registry.counter({
    name: 'apiserver_audit_requests_rejected_total',
    help: 'Requests refused because they could not be put on record.',
    stability: 'ALPHA',
    labels: [],
  })
  const event = events.labels()
  const refusal = rejected.labels()
  return {
    event: () => event.inc(),
    level: (level) => levels.labels(level).inc(),
    lost: (plugin, count) => errors.labels(plugin).inc(count),
    rejected: () => refusal.inc(),
  }
}
