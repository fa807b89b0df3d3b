/** How long a container waits before it is started again, and what it says meanwhile. Pure. */
import { crashLoopMessage, retryMs } from '../back-off.ts'
import { type ContainerRecord, lastEndOf } from '../container-runs.ts'

/** How soon after something failed it is said that it waits. */
const NOTICE_MS = 1000
/** After what failed for reasons that nobody knows to end. */
export const RETRY_MS = 10_000

/** Whether it has ended and may not start yet. */
export function isHeld(record: ContainerRecord, nowMs: number): boolean {
  const end = lastEndOf(record)
  return end !== undefined && nowMs < retryMs(record.restarts, end.finishedMs)
}

/** Whether it says so from now on: a moment after its end, which is to be seen before. */
export function sayHeld(record: ContainerRecord, pod: string, nowMs: number): boolean {
  const { restarts, waiting, spec } = record
  const end = lastEndOf(record)
  if (end === undefined || restarts === undefined) return false
  if (waiting !== undefined || nowMs < end.finishedMs + NOTICE_MS) return false
  record.waiting = { reason: 'CrashLoopBackOff', message: crashLoopMessage(restarts, spec.name, pod) }
  return true
}

/** When one that is to be started is to be looked at again. `pullMs`: when its image is pulled again. */
export function waitMsOf(record: ContainerRecord, pullMs: number | undefined, nowMs: number): number {
  const { restarts, waiting } = record
  const end = lastEndOf(record)
  if (end !== undefined) {
    const retry = retryMs(restarts, end.finishedMs)
    if (retry <= nowMs) return waiting === undefined ? nowMs : nowMs + RETRY_MS
    const noticeMs = end.finishedMs + NOTICE_MS
    return waiting === undefined && noticeMs > nowMs ? Math.min(noticeMs, retry) : retry
  }
  if (pullMs === undefined || waiting === undefined) return nowMs + RETRY_MS
  return waiting.reason === 'ErrImagePull' ? nowMs + NOTICE_MS : Math.max(pullMs, nowMs)
}
