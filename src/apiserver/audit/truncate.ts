/**
 * Keeps audit events below the size limit: removes objects from large events, drops events that are still too large,
 * and splits large batches.
 */
import { aggregatedText } from '#auth/authorizer.ts'

import { type AuditEvent, eventLine, withoutObjects } from './event.ts'
import type { ReportLoss, Sink } from './sink.ts'

export interface TruncateOptions {
  readonly maxEventBytes: number
  readonly maxBatchBytes: number
}

const NAME = 'truncate'

export function createTruncatingSink(delegate: Sink, options: TruncateOptions, reportLoss: ReportLoss): Sink {
  const { maxEventBytes, maxBatchBytes } = options
  return {
    name: `${NAME}<${delegate.name}>`,
    isStrict: delegate.isStrict,
    async process(events) {
      const batches: AuditEvent[][] = [[]]
      const lost: AuditEvent[] = []
      let batchBytes = 0
      for (const event of events) {
        const { kept, bytes } = cutTo(maxEventBytes, event)
        if (bytes > maxEventBytes) {
          lost.push(kept)
          continue
        }
        if (batchBytes > 0 && batchBytes + bytes > maxBatchBytes) {
          batches.push([])
          batchBytes = 0
        }
        batchBytes += bytes
        batches.at(-1)?.push(kept)
      }
      let isStored = true
      for (const batch of batches.filter(({ length }) => length > 0)) {
        isStored = (await delegate.process(batch)) && isStored
      }
      const why = 'event is too large even after truncating'
      if (lost.length > 0) reportLoss(NAME, new Error(aggregatedText(lost.map(() => why))), lost)
      return isStored
    },
    close: () => delegate.close(),
  }
}

function cutTo(maxBytes: number, event: AuditEvent): { readonly kept: AuditEvent; readonly bytes: number } {
  const bytes = eventLine(event).length
  if (bytes <= maxBytes || event.level === 'Metadata') return { kept: event, bytes }
  const kept = withoutObjects(event)
  return { kept, bytes: eventLine(kept).length }
}
