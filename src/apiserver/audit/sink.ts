/** The interface of a sink, which stores or sends audit events. */
import type { AuditEvent } from './event.ts'

export interface Sink {
  /** The name in metrics and logs: `log`, `buffered<webhook>`. */
  readonly name: string
  /** True if requests must be refused when their events cannot be stored. */
  readonly isStrict: boolean
  /** Resolves to true if all events are stored. A sink reports its failures itself and never rejects. */
  process(events: readonly AuditEvent[]): boolean | Promise<boolean>
  /** Flushes buffered events and closes the destination. No event is accepted afterwards. */
  close(): Promise<void>
}

/** Called with the events that a sink lost and its name. */
export type ReportLoss = (plugin: string, error: unknown, lost: readonly AuditEvent[]) => void

/** Sends every event to every sink; true if all of them stored it. */
export function unionOf(sinks: readonly Sink[]): Sink {
  const [only] = sinks
  if (only !== undefined && sinks.length === 1) return only
  return {
    name: `union[${sinks.map(({ name }) => name).join(',')}]`,
    isStrict: sinks.some(({ isStrict }) => isStrict),
    process(events) {
      const outcomes = sinks.map((sink) => sink.process(events))
      return outcomes.every((outcome) => typeof outcome === 'boolean')
        ? !outcomes.includes(false)
        : Promise.all(outcomes.map((outcome) => Promise.resolve(outcome))).then((all) => !all.includes(false))
    },
    async close() {
      for (const sink of sinks) await sink.close()
    },
  }
}

/** Mode `blocking`: requests wait for their events and proceed even if storing failed. */
export function ignoringErrors(sink: Sink): Sink {
  return {
    name: `ignoreErrors<${sink.name}>`,
    isStrict: false,
    process(events) {
      const outcome = sink.process(events)
      return typeof outcome === 'boolean' ? true : outcome.then(() => true)
    },
    close: () => sink.close(),
  }
}
