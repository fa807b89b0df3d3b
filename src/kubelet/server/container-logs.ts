/** `/containerLogs/<namespace>/<pod>/<container>`: sends a container's log, or explains why there is none. */
import type { Clock } from '#lib/clock.ts'
import { goQuote } from '#lib/go/text.ts'
import type { Exchange } from '#lib/http/exchange.ts'

import { isRunning } from '../pod/container-runs.ts'
import { isPrevious, type LogOptions, noLogMessage, parseLogOptions } from '../pod/log-options.ts'
import type { ContainerOfPod, PodOfNode } from '../pod/pod-of-node.ts'
import { type Answer, textAnswer } from './answer.ts'
import { sendLog } from './log-file.ts'

export interface LogRequest {
  readonly exchange: Exchange
  readonly clock: Clock
  readonly query: URLSearchParams
  readonly name: string
  readonly container: string
  /** The current state of the pod. */
  readonly find: () => PodOfNode | undefined
}

/** Undefined: the log was sent. */
export async function answerLog(request: LogRequest): Promise<Answer | undefined> {
  const { query, name, container, find, clock } = request
  const pod = find()
  if (pod === undefined) return textAnswer(404, `pod ${goQuote(name)} does not exist`)
  const found = pod.containers.get(container)
  if (found === undefined) return textAnswer(404, `container ${goQuote(container)} not found in pod ${goQuote(name)}`)
  const options = parseLogOptions(query, clock.now())
  if ('status' in options) return textAnswer(options.status, options.text)
  const { record, current, previous } = found
  const instance = !options.previous || isPrevious(record) ? current : previous
  if (instance === undefined) return textAnswer(400, noLogMessage(record, name, options.previous))
  await send(request, instance, { ...options, follow: options.follow && !options.previous })
  return undefined
}

async function send(
  { exchange, clock, find, container }: LogRequest,
  { containerId, logPath }: NonNullable<ContainerOfPod['current']>,
  options: LogOptions,
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
    await sendLog({ path: logPath, clock, isGrowing, signal: closed.signal }, options, sink)
    writer.end()
  } catch (error) {
    // Nothing was written yet, or the file was removed: the log is empty.
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') writer.end()
    else writer.abort()
  }
}
