/** Whether a process that lives is lost, by how long it has not said that it is well. Pure. */

export interface Health {
  /** Another number is another process, with all its chances. */
  readonly pid: number
  readonly seenMs: number
  readonly hasBeenWell: boolean
  /** How often in a row it did not say that it is well, and since when. */
  readonly failures: number
  readonly failingMs: number
}

/** A process may be busy; one that says nothing so often in a row, and for so long, is lost. Looks may follow each other fast. */
export const SICK_LOOKS = 3
const SICK_MS = 20_000
/** One that was never well may still be on its way. */
const STARTING_MS = 60_000

export function nextHealth(before: Health | undefined, pid: number, isWell: boolean, nowMs: number): Health {
  const known = before?.pid === pid ? before : { pid, seenMs: nowMs, hasBeenWell: false, failures: 0, failingMs: nowMs }
  if (isWell) return { ...known, hasBeenWell: true, failures: 0 }
  return { ...known, failures: known.failures + 1, failingMs: known.failures === 0 ? nowMs : known.failingMs }
}

export function isLost({ failures, failingMs, hasBeenWell, seenMs }: Health, nowMs: number): boolean {
  const isOnItsWay = !hasBeenWell && nowMs - seenMs < STARTING_MS
  return failures >= SICK_LOOKS && nowMs - failingMs >= SICK_MS && !isOnItsWay
}
