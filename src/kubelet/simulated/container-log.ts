/** The log of a container that never ran: what its command would have said, at the times when it would have. Pure. */
import { timeText } from '#meta/time.ts'

import type { Run } from '../container-runs.ts'
import type { ContainerLife } from './container-life.ts'
import type { Script } from './script.ts'

export interface LogLine {
  readonly atMs: number
  readonly text: string
}

export interface LogOptions {
  readonly sinceMs?: number | undefined
  readonly tailLines?: number | undefined
  readonly timestamps?: boolean | undefined
}

/** Of a log that goes on for ever, so much is kept. */
const MAX_LINES = 10_000

/** What a run has written by now. */
export function linesOf(
  { spec, conduct }: Pick<ContainerLife, 'spec' | 'conduct'>,
  { startedMs, end }: Run,
  nowMs: number,
): LogLine[] {
  const untilMs = Math.min(end?.finishedMs ?? nowMs, nowMs)
  const { script, log } = conduct ?? {}
  const told =
    log ?? (script === undefined ? `simulated container "${spec.name}" (${spec.image ?? ''}) started` : undefined)
  const first = told === undefined ? [] : told.split('\n').map((text) => ({ atMs: startedMs, text }))
  const lines = (script?.lines ?? []).map(({ afterMs, text }) => ({ atMs: startedMs + afterMs, text }))
  const repeated = script?.again === undefined ? [] : repeatedLines(script.again, startedMs, untilMs)
  return [...first, ...lines, ...repeated].filter(({ atMs }) => atMs <= untilMs)
}

function repeatedLines(
  { lines, everyMs }: NonNullable<Script['again']>,
  startedMs: number,
  untilMs: number,
): LogLine[] {
  const turns = Math.floor((untilMs - startedMs) / everyMs) + 1
  const from = Math.max(0, turns - Math.ceil(MAX_LINES / Math.max(1, lines.length)))
  return Array.from({ length: turns - from }, (_, at) =>
    lines.map(({ afterMs, text }) => ({ atMs: startedMs + afterMs + (from + at) * everyMs, text })),
  ).flat()
}

/** As kubelets write it out. */
export function logText(lines: readonly LogLine[], { sinceMs = 0, tailLines, timestamps = false }: LogOptions): string {
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
