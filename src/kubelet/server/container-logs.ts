/** `/containerLogs/<namespace>/<pod>/<container>`: which log is meant, how much of it, and why there is none. */
import type { Clock } from '#lib/clock.ts'
import { goQuote } from '#lib/go-text.ts'
import type { Exchange } from '#lib/http/exchange.ts'

import { isRunning } from '../container-runs.ts'
import { isPrevious, logWishOf, type LogWish, whyNoLog } from '../log-wish.ts'
import type { ContainerOfPod, PodOfNode } from '../pods/pod-of-node.ts'
import { type Answer, textAnswer } from './answer.ts'
import { sendLog } from './log-file.ts'

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
  if (meant === undefined) return textAnswer(404, `container ${goQuote(container)} not found in pod ${goQuote(name)}`)
  const wish = logWishOf(query, clock.now())
  if ('status' in wish) return textAnswer(wish.status, wish.text)
  const { record, current, previous } = meant
  const instance = !wish.previous || isPrevious(record) ? current : previous
  if (instance === undefined) return textAnswer(400, whyNoLog(record, name, wish.previous))
  await send(request, instance, { ...wish, follow: wish.follow && !wish.previous })
  return undefined
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
