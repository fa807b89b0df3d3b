/** How long the kubelet waits before it starts a container again, or pulls an image again. Pure. */
import { durationOfMs } from '#meta/duration.ts'

import type { BackOff } from './container-runs.ts'

const FIRST_MS = 10_000
const MAX_MS = 300_000
/** Who has not failed for so long starts anew. */
const FORGET_MS = 2 * MAX_MS

/** When what failed at `failedMs` may be tried again; in the past, and for the first failure, at once. */
export function retryMs(backOff: BackOff | undefined, failedMs: number): number {
  return isForgotten(backOff, failedMs) ? failedMs : failedMs + backOff.delayMs
}

/** What to wait next time, from the try on that is made now: `maxMs` at most. */
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

/** What a container that waits says about it; `pod` is `name_namespace(uid)`. */
export function crashLoopMessage({ delayMs }: BackOff, container: string, pod: string): string {
  return `back-off ${durationOfMs(delayMs)} restarting failed container=${container} pod=${pod}`
}
