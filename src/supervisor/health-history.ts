/** Decides from failed health checks whether to restart a process that is still running. Pure. */

export interface HealthHistory {
  /** A new pid is a new process without failures. */
  readonly pid: number
  readonly seenMs: number
  readonly hasBeenWell: boolean
  /** The number of consecutive failures, and the time of the first. */
  readonly failures: number
  readonly failingMs: number
}

/**
 * A process may be busy: it is lost only after this many consecutive failures and this time, because checks may follow
 * each other quickly.
 */
export const LOST_AFTER_FAILURES = 3
const SICK_MS = 20_000
/** A process that was never healthy may still be starting. */
const STARTING_MS = 60_000

export function recordHealth(
  before: HealthHistory | undefined,
  pid: number,
  isWell: boolean,
  nowMs: number,
): HealthHistory {
  const known = before?.pid === pid ? before : { pid, seenMs: nowMs, hasBeenWell: false, failures: 0, failingMs: nowMs }
  if (isWell) return { ...known, hasBeenWell: true, failures: 0 }
  return { ...known, failures: known.failures + 1, failingMs: known.failures === 0 ? nowMs : known.failingMs }
}

export function isLost({ failures, failingMs, hasBeenWell, seenMs }: HealthHistory, nowMs: number): boolean {
  const isOnItsWay = !hasBeenWell && nowMs - seenMs < STARTING_MS
  return failures >= LOST_AFTER_FAILURES && nowMs - failingMs >= SICK_MS && !isOnItsWay
}
