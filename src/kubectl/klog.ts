/** Formats log lines as klog does, for the few messages that kubectl logs. */
import process from 'node:process'

import type { ProgramContext } from '#lib/program.ts'

type Severity = 'I' | 'W' | 'E'

/** `W1116 07:25:51.123456    1234 helpers.go:731] text`. */
export function logLine(severity: Severity, nowMs: number, source: string, text: string): string {
  const [, month = '', day = '', time = ''] = /^\d+-(\d+)-(\d+)T([\d:.]+)Z$/.exec(new Date(nowMs).toISOString()) ?? []
  return `${severity}${month}${day} ${time}000 ${String(process.pid).padStart(7)} ${source}] ${text}\n`
}

export function logWarning(
  { stderr, clock }: Pick<ProgramContext, 'stderr' | 'clock'>,
  source: string,
  text: string,
): void {
  stderr.write(logLine('W', clock.now(), source, text))
}
