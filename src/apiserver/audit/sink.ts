/** Where audit events go, and how those who send them learn whether they arrived. */
import type { AuditEvent } from './event.ts'

export interface Sink {
  /** For metrics and the log: `log`, `buffered<webhook>`. */
  readonly name: string
  /** Whether requests whose events it fails to keep must be refused. */
  readonly isStrict: boolean
  /** True when all of them are where they belong; a sink that fails reports it itself. Never rejects. */
  process(events: readonly AuditEvent[]): boolean | Promise<boolean>
  /** Sends what is still held back, and closes what was opened. Nothing is processed after. */
  close(): Promise<void>
}

/** Told of events that were lost, by the name of the sink that lost them. */
export type ReportLoss = (plugin: string, error: unknown, lost: readonly AuditEvent[]) => void

/** Every event to every sink; true when all of them have it. */
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

/** `blocking`: requests wait for their events, and go on when those could not be stored. */
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
