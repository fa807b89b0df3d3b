/**
 * Deadlines of running requests. Nearly all have the same length and so fall due in the order in which they began: one
 * queue and one timer serve them all, where a timer for each request would cost as much as finding its object.
 */
import type { Clock, Timer } from './clock.ts'
import { Roll } from './roll.ts'

/** Runs `late` after `limitMs`, unless cancelled before. */
export type Deadlines = (limitMs: number, late: () => void) => Timer

interface Deadline {
  readonly dueMs: number
  readonly late: () => void
}

/** `usualMs` is the length that goes through the queue; others get a timer of their own. */
export function createDeadlines(clock: Clock, usualMs: number): Deadlines {
  /** In the order in which they fall due. */
  const queue = new Roll<Deadline>()
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
      first.leave()
      first.value.late()
    }
  }
  return (limitMs, late) => {
    if (limitMs !== usualMs) return clock.after(limitMs, late, { background: true })
    const link = queue.add({ dueMs: clock.elapsed() + usualMs, late })
    if (!isArmed) arm(usualMs)
    return { cancel: () => void link.leave() }
  }
}
