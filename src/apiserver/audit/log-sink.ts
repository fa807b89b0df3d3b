/** The audit log: a line for each event, in a file or on standard output. */
import { latin1 } from '#lib/latin1.ts'

import { type AuditEvent, eventLine, legacyText } from './event.ts'
import type { ReportLoss, Sink } from './sink.ts'

/** The destination of lines. */
export interface LineWriter {
  /** Resolves when the line (with newline, one character per byte) is written. Lines stay in order and complete. */
  write(line: string): Promise<void>
  close(): Promise<void>
}

export type LogFormat = 'json' | 'legacy'

const NAME = 'log'

export function createLogSink(writer: LineWriter, format: LogFormat, reportLoss: ReportLoss): Sink {
  const lineOf = format === 'json' ? eventLine : (event: AuditEvent) => `${latin1(legacyText(event))}\n`
  const write = (event: AuditEvent): Promise<boolean> =>
    writer.write(lineOf(event)).then(
      () => true,
      (error: unknown) => {
        reportLoss(NAME, error, [event])
        return false
      },
    )
  return {
    name: NAME,
    isStrict: true,
    process(events) {
      const [only] = events
      if (only !== undefined && events.length === 1) return write(only)
      return Promise.all(events.map(write)).then((all) => !all.includes(false))
    },
    close: () => writer.close(),
  }
}
