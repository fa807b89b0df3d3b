/** How long a container waits before it is started again, and what it says meanwhile. Pure. */
import { crashLoopMessage, retryMs } from '../back-off.ts'
import type { ContainerRecord } from '../container-runs.ts'

/** How soon after something failed it is said that it waits. */
const NOTICE_MS = 1000
/** After what failed for reasons that nobody knows to end. */
export const RETRY_MS = 10_000

/** Whether it has ended and may not start yet. */
export function isHeld({ run, restarts }: ContainerRecord, nowMs: number): boolean {
  return run?.end !== undefined && nowMs < retryMs(restarts, run.end.finishedMs)
}

/** Whether it says so from now on: a moment after its end, which is to be seen before. */
export function sayHeld(record: ContainerRecord, pod: string, nowMs: number): boolean {
  const { run, restarts, waiting, spec } = record
  if (run?.end === undefined || restarts === undefined) return false
  if (waiting !== undefined || nowMs < run.end.finishedMs + NOTICE_MS) return false
  record.waiting = { reason: 'CrashLoopBackOff', message: crashLoopMessage(restarts, spec.name, pod) }
  return true
}

/** When one that is to be started is to be looked at again. `pullMs`: when its image is pulled again. */
export function waitMsOf(record: ContainerRecord, pullMs: number | undefined, nowMs: number): number {
  const { run, restarts, waiting } = record
  if (run?.end !== undefined) {
    const retry = retryMs(restarts, run.end.finishedMs)
    if (retry <= nowMs) return waiting === undefined ? nowMs : nowMs + RETRY_MS
    const noticeMs = run.end.finishedMs + NOTICE_MS
    return waiting === undefined && noticeMs > nowMs ? Math.min(noticeMs, retry) : retry
  }
  if (pullMs === undefined || waiting === undefined) return nowMs + RETRY_MS
  return waiting.reason === 'ErrImagePull' ? nowMs + NOTICE_MS : Math.max(pullMs, nowMs)
}
