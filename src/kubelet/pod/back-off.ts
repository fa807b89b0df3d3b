/** Computes the back-off before the kubelet restarts a container or pulls an image again. Pure. */
import { durationOfMs } from '#lib/go/duration.ts'

import { type BackOff, type ContainerRecord, lastEndOf } from './container-runs.ts'

const FIRST_MS = 10_000
const MAX_MS = 300_000
/** The back-off resets after this time without a failure. */
const FORGET_MS = 2 * MAX_MS

/** The earliest time of the next attempt after a failure at `failedMs`. The first failure has no delay. */
export function retryMs(backOff: BackOff | undefined, failedMs: number): number {
  return isForgotten(backOff, failedMs) ? failedMs : failedMs + backOff.delayMs
}

/** The back-off after the attempt that is made now, at most `maxMs`. */
export function nextBackOff(
  backOff: BackOff | undefined,
  failedMs: number,
  nowMs: number,
  maxMs: number = MAX_MS,
): BackOff {
  const delayMs = isForgotten(backOff, failedMs) ? FIRST_MS : backOff.delayMs * 2
  return { delayMs: Math.min(delayMs, maxMs), updatedMs: nowMs }
}

function isForgotten(backOff: BackOff | undefined, failedMs: number): backOff is undefined {
  return backOff === undefined || failedMs - backOff.updatedMs > FORGET_MS
}

/** The message of the waiting state; `pod` is `name_namespace(uid)`. */
export function crashLoopMessage({ delayMs }: BackOff, container: string, pod: string): string {
  return `back-off ${durationOfMs(delayMs)} restarting failed container=${container} pod=${pod}`
}

/** Delay after an end before the state becomes CrashLoopBackOff. */
const NOTICE_MS = 1000
/** Retry interval after other failures. */
export const RETRY_MS = 10_000

/** True if it has ended and may not restart yet. */
export function isBackingOff(record: ContainerRecord, nowMs: number): boolean {
  const end = lastEndOf(record)
  return end !== undefined && nowMs < retryMs(record.restarts, end.finishedMs)
}

/**
 * Sets the waiting state. Returns true if it is new: it follows the end after a delay, so that the end is visible
 * first.
 */
export function setCrashLoopBackOff(record: ContainerRecord, pod: string, nowMs: number): boolean {
  const { restarts, waiting, spec } = record
  const end = lastEndOf(record)
  if (end === undefined || restarts === undefined) return false
  if (waiting !== undefined || nowMs < end.finishedMs + NOTICE_MS) return false
  record.waiting = { reason: 'CrashLoopBackOff', message: crashLoopMessage(restarts, spec.name, pod) }
  return true
}

/** Time of the next check of a container to be started. `pullMs` is the time of the next pull of its image. */
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
