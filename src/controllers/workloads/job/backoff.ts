/** Computes the exponential backoff of a Job after failed pods; a success resets it. Pure. */
import type { Pod } from '#apis/core/v1.ts'
import { exponentialDelayMs } from '#lib/backoff.ts'

import { allFailuresBefore, endedMs } from './pods.ts'

/** Failures since the last success. */
export interface FailureCount {
  readonly count: number
  readonly lastMs: number
}

export const NO_FAILURES: FailureCount = { count: 0, lastMs: 0 }

const GROWTH = { baseMs: 10_000, capMs: 600_000 }

export function withEnded(before: FailureCount, succeeded: readonly Pod[], failed: readonly Pod[]): FailureCount {
  const ends = failed.map(endedMs)
  if (succeeded.length === 0) {
    return ends.length === 0 ? before : { count: before.count + ends.length, lastMs: Math.max(...ends) }
  }
  const lastSuccessMs = Math.max(...succeeded.map(endedMs))
  const later = ends.filter((ms) => ms > lastSuccessMs)
  return later.length === 0 ? NO_FAILURES : { count: later.length, lastMs: Math.max(...later) }
}

export function waitMs({ count, lastMs }: FailureCount, nowMs: number): number {
  if (count === 0) return 0
  return Math.max(0, lastMs + exponentialDelayMs(GROWTH, count - 1) - nowMs)
}

/** The same for one index, from its last failed pod. */
export function indexWaitMs(failed: Pod | undefined, nowMs: number): number {
  if (failed === undefined) return 0
  return waitMs({ count: allFailuresBefore(failed) + 1, lastMs: endedMs(failed) }, nowMs)
}
