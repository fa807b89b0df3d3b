/** Auditing: a policy selects the events of each request, and a sink stores them. */
import type { AuditedRequest } from '#component/requests/request-filters.ts'
import type { Clock } from '#lib/clock.ts'

import type { AuditMetrics } from './metrics.ts'
import type { SchemaFor } from './objects.ts'
import type { EvaluatePolicy } from './policy.ts'
import type { Sink } from './sink.ts'
import { AuditTrail } from './trail.ts'

export interface AuditOptions {
  readonly clock: Clock
  readonly evaluate: EvaluatePolicy
  readonly sink: Sink
  readonly metrics: AuditMetrics
  /** Decodes responses that are not JSON. */
  readonly schemaFor: SchemaFor
}

export interface Audit {
  begin(request: AuditedRequest): AuditTrail
  /** Flushes buffered events. */
  close(): Promise<void>
}

export function createAudit({ clock, evaluate, sink, metrics, schemaFor }: AuditOptions): Audit {
  const options = {
    clock,
    evaluate,
    schemaFor,
    store(event: Parameters<Sink['process']>[0][number]) {
      metrics.event()
      return sink.process([event])
    },
    isStrict: sink.isStrict,
    observe: metrics.level,
    rejected: metrics.rejected,
  }
  return { begin: (request) => new AuditTrail(options, request), close: () => sink.close() }
}
