/**
 * Calls back when the deadline of a request passes. One queue and one timer serve all requests, because most deadlines
 * expire in the order in which the requests began.
 */
import type { Clock, Timer } from './clock.ts'
import { InsertionSet } from './collections/insertion-set.ts'

/** Runs `late` after `limitMs`, unless cancelled before. */
export type Deadlines = (limitMs: number, late: () => void) => Timer

interface Deadline {
  readonly dueMs: number
  readonly late: () => void
}

/** `usualMs` is the duration that goes through the queue; others get a separate timer. */
export function createDeadlines(clock: Clock, usualMs: number): Deadlines {
  /** In the order in which they fall due. */
  const queue = new InsertionSet<Deadline>()
  let isArmed = false
  const arm = (delayMs: number): void => {
    isArmed = true
    clock.after(delayMs, sweep, { background: true })
  }
  const sweep = (): void => {
    isArmed = false
    const nowMs = clock.elapsed()
    for (let { first } = queue; first !== undefined; { first } = queue) {
      if (first.value.dueMs > nowMs) return arm(first.value.dueMs - nowMs)
      first.remove()
      first.value.late()
    }
  }
  return (limitMs, late) => {
    if (limitMs !== usualMs) return clock.after(limitMs, late, { background: true })
    const link = queue.add({ dueMs: clock.elapsed() + usualMs, late })
    if (!isArmed) arm(usualMs)
    return { cancel: () => void link.remove() }
  }
}
