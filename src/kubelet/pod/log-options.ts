/**
 * Parses the options of a log request, and formats upstream's error for a container without the requested log. Pure.
 */
import { goQuote } from '#lib/go/text.ts'
import { epochMsOf } from '#meta/time.ts'

import type { ContainerRecord } from './container-runs.ts'

export interface LogOptions {
  readonly previous: boolean
  readonly follow: boolean
  readonly timestamps: boolean
  readonly tailLines: number | undefined
  readonly sinceMs: number | undefined
  readonly limitBytes: number
}

export interface LogRefusal {
  readonly status: number
  readonly text: string
}

const UNREADABLE: LogRefusal = { status: 400, text: '{"message": "Unable to decode query."}' }
const INVALID: LogRefusal = { status: 422, text: '{"message": "Invalid request."}' }

export function parseLogOptions(query: URLSearchParams, nowMs: number): LogOptions | LogRefusal {
  const texts = ['tailLines', 'limitBytes', 'sinceSeconds'].map((name) => query.get(name) ?? undefined)
  if (texts.some((text) => text !== undefined && !/^[+-]?\d+$/.test(text))) return UNREADABLE
  const [tailLines, limitBytes = Infinity, sinceSeconds] = texts.map((text) =>
    text === undefined ? text : Number(text),
  )
  const time = query.get('sinceTime')
  const isTwice = sinceSeconds !== undefined && time !== null
  if (isTwice || (tailLines ?? 0) < 0 || limitBytes < 1 || (sinceSeconds ?? 1) < 1) return INVALID
  const refusal = streamRefusal(query.get('stream') ?? 'All', tailLines)
  if (refusal !== undefined) return refusal
  const is = (name: string): boolean => query.get(name) === 'true'
  const flags = { previous: is('previous'), follow: is('follow'), timestamps: is('timestamps') }
  return { ...flags, tailLines, limitBytes, sinceMs: sinceOf(query, nowMs) }
}

function sinceOf(query: URLSearchParams, nowMs: number): number | undefined {
  const [seconds, time] = [query.get('sinceSeconds'), query.get('sinceTime')]
  if (time !== null) return epochMsOf(time)
  return seconds === null ? undefined : nowMs - Number(seconds) * 1000
}

/** A single stream needs the gate PodLogsQuerySplitStreams, which is off. */
function streamRefusal(stream: string, tailLines: number | undefined): LogRefusal | undefined {
  if (stream === 'All') return undefined
  if (!['Stdout', 'Stderr'].includes(stream) || tailLines !== undefined) return INVALID
  const hint = 'Please enable PodLogsQuerySplitStreams feature gate in kubelet'
  return { status: 400, text: `unable to return the given log stream: ${goQuote(stream)}. ${hint}` }
}

/** While a container waits to be restarted, its newest ended run is the previous one. */
export const isPrevious = ({ waiting, run }: Pick<ContainerRecord, 'waiting' | 'run'>): boolean =>
  waiting !== undefined && run?.end !== undefined

const WAITING_TEXTS: Readonly<Record<string, string>> = {
  ErrImagePull: "image can't be pulled",
  ImagePullBackOff: 'trying and failing to pull image',
}

export function noLogMessage(
  { spec, waiting }: Pick<ContainerRecord, 'spec' | 'waiting'>,
  pod: string,
  wantsPrevious: boolean,
): string {
  const what = `container ${goQuote(spec.name)} in pod ${goQuote(pod)}`
  if (wantsPrevious) return `previous terminated ${what} not found`
  const reason = waiting?.reason ?? 'ContainerCreating'
  return `${what} is waiting to start: ${WAITING_TEXTS[reason] ?? reason}`
}
