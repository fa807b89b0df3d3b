/** Generates the log of a simulated container: the output that its command would write, with times. Pure. */
import type { Run } from '#kubelet/pod/container-runs.ts'
import { timeText } from '#meta/time.ts'

import type { Script } from './script.ts'
import type { SimulatedContainer } from './simulated-container.ts'

export interface LogLine {
  readonly atMs: number
  readonly text: string
}

export interface LogSelection {
  readonly sinceMs?: number | undefined
  readonly tailLines?: number | undefined
  readonly timestamps?: boolean | undefined
}

/** Limit of lines for a log that repeats forever. */
const MAX_LINES = 10_000

/** The lines that a run has written so far. */
export function linesOf(
  { spec, runPlan }: Pick<SimulatedContainer, 'spec' | 'runPlan'>,
  { startedMs, end }: Run,
  nowMs: number,
): LogLine[] {
  const untilMs = Math.min(end?.finishedMs ?? nowMs, nowMs)
  const { script, log } = runPlan ?? {}
  const started =
    log ?? (script === undefined ? `simulated container "${spec.name}" (${spec.image ?? ''}) started` : undefined)
  const first = started === undefined ? [] : started.split('\n').map((text) => ({ atMs: startedMs, text }))
  const lines = (script?.lines ?? []).map(({ afterMs, text }) => ({ atMs: startedMs + afterMs, text }))
  const repeated = script?.repeated === undefined ? [] : repeatedLines(script.repeated, startedMs, untilMs)
  return [...first, ...lines, ...repeated].filter(({ atMs }) => atMs <= untilMs)
}

function repeatedLines(
  { lines, everyMs }: NonNullable<Script['repeated']>,
  startedMs: number,
  untilMs: number,
): LogLine[] {
  const rounds = Math.floor((untilMs - startedMs) / everyMs) + 1
  const from = Math.max(0, rounds - Math.ceil(MAX_LINES / Math.max(1, lines.length)))
  return Array.from({ length: rounds - from }, (_, at) =>
    lines.map(({ afterMs, text }) => ({ atMs: startedMs + afterMs + (from + at) * everyMs, text })),
  ).flat()
}

/** Formats the lines as a kubelet does. */
export function logText(
  lines: readonly LogLine[],
  { sinceMs = 0, tailLines, timestamps = false }: LogSelection,
): string {
  const recent = lines.filter(({ atMs }) => atMs >= sinceMs)
  const last = tailLines === undefined ? recent : recent.slice(Math.max(0, recent.length - tailLines))
  return last.map(({ atMs, text }) => `${timestamps ? `${nanoTime(atMs)} ` : ''}${text}\n`).join('')
}

/** RFC 3339 with nanoseconds. */
function nanoTime(ms: number): string {
  const seconds = Math.floor(ms / 1000)
  const nanos = String(Math.round((ms - seconds * 1000) * 1e6)).padStart(9, '0')
  return timeText({ seconds, nanos: 0 }).replace('Z', `.${nanos}Z`)
}
