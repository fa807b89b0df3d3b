/** `/containerLogs/<namespace>/<pod>/<container>`: which log is meant, how much of it, and why there is none. */
import type { Clock } from '#lib/clock.ts'
import { goQuote } from '#lib/go-text.ts'
import type { Exchange } from '#lib/http/exchange.ts'
import { epochMsOf } from '#meta/time.ts'

import { isRunning } from '../container-runs.ts'
import type { ContainerOfPod, PodOfNode } from '../pods/pod-of-node.ts'
import { type Answer, textAnswer } from './answer.ts'
import { type LogWish, sendLog } from './log-file.ts'

export interface LogRequest {
  readonly exchange: Exchange
  readonly clock: Clock
  readonly query: URLSearchParams
  readonly name: string
  readonly container: string
  /** As it is now. */
  readonly find: () => PodOfNode | undefined
}

/** Undefined: it was answered with the log. */
export async function answerLog(request: LogRequest): Promise<Answer | undefined> {
  const { query, name, container, find, clock } = request
  const pod = find()
  if (pod === undefined) return textAnswer(404, `pod ${goQuote(name)} does not exist`)
  const meant = pod.containers.get(container)
  const what = `container ${goQuote(container)}`
  if (meant === undefined) return textAnswer(404, `${what} not found in pod ${goQuote(name)}`)
  const wish = wishOf(query, clock.now())
  if ('status' in wish) return wish
  const isPrevious = query.get('previous') === 'true'
  const instance = isPrevious ? previousOf(meant) : meant.current
  if (instance === undefined && isPrevious)
    return textAnswer(400, `previous terminated ${what} in pod ${goQuote(name)} not found`)
  if (instance === undefined)
    return textAnswer(400, `${what} in pod ${goQuote(name)} is waiting to start: ${whyOf(meant)}`)
  await send(request, instance, { ...wish, follow: wish.follow && !isPrevious })
  return undefined
}

/** While it waits to be started again, the one that ended last is the previous. */
const previousOf = ({ record, current, previous }: ContainerOfPod): ContainerOfPod['previous'] =>
  record.waiting !== undefined && record.run?.end !== undefined ? current : previous

const WAITING_TEXTS: Readonly<Record<string, string>> = {
  ErrImagePull: "image can't be pulled",
  ImagePullBackOff: 'trying and failing to pull image',
}

function whyOf({ record: { waiting } }: ContainerOfPod): string {
  const reason = waiting?.reason ?? 'ContainerCreating'
  return WAITING_TEXTS[reason] ?? reason
}

const UNREADABLE: Answer = textAnswer(400, '{"message": "Unable to decode query."}')
const INVALID: Answer = textAnswer(422, '{"message": "Invalid request."}')

function wishOf(query: URLSearchParams, nowMs: number): LogWish | Answer {
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
  const [follow, timestamps] = ['follow', 'timestamps'].map((name) => query.get(name) === 'true')
  return {
    follow: follow === true,
    timestamps: timestamps === true,
    tailLines,
    limitBytes,
    sinceMs: sinceOf(query, nowMs),
  }
}

function sinceOf(query: URLSearchParams, nowMs: number): number | undefined {
  const [seconds, time] = [query.get('sinceSeconds'), query.get('sinceTime')]
  if (time !== null) return epochMsOf(time)
  return seconds === null ? undefined : nowMs - Number(seconds) * 1000
}

/** One stream alone is behind a gate that is off. */
function streamRefusal(stream: string, tailLines: number | undefined): Answer | undefined {
  if (stream === 'All') return undefined
  if (!['Stdout', 'Stderr'].includes(stream) || tailLines !== undefined) return INVALID
  const hint = 'Please enable PodLogsQuerySplitStreams feature gate in kubelet'
  return textAnswer(400, `unable to return the given log stream: ${goQuote(stream)}. ${hint}`)
}

async function send(
  { exchange, clock, find, container }: LogRequest,
  { containerId, logPath }: NonNullable<ContainerOfPod['current']>,
  wish: LogWish,
): Promise<void> {
  const writer = exchange.stream(200, [])
  const closed = new AbortController()
  writer.onClose(() => closed.abort())
  const isGrowing = (): boolean => {
    const now = find()?.containers.get(container)
    return now?.current?.containerId === containerId && isRunning(now.record)
  }
  const sink = {
    async write(piece: Buffer): Promise<boolean> {
      if (!writer.write(piece)) await writer.drained()
      return !writer.isClosed
    },
  }
  try {
    await sendLog({ path: logPath, clock, isGrowing, signal: closed.signal }, wish, sink)
    writer.end()
  } catch (error) {
    // Nothing was written yet, or the file is gone: an empty log, as far as anybody can tell.
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') writer.end()
    else writer.abort()
  }
}
