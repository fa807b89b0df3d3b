/** Reads the whole store once a day in small steps, so that damage is found while a good snapshot still exists. */
import { every, type Clock, type Timer } from '#lib/clock.ts'

import type { ReadCalls } from './read-calls.ts'

const STEP_EVERY_MS = 1000
const PASS_EVERY_MS = 24 * 60 * 60 * 1000

/** Damage shows in the store's health. `isChecked`: the store was verified when it was opened. */
export function createScrub(clock: Clock, reads: ReadCalls, isChecked: boolean): Timer {
  let nextId = 0
  let passDueMs = clock.elapsed() + (isChecked ? PASS_EVERY_MS : 0)
  let isBusy = false
  const step = async (): Promise<void> => {
    nextId = await reads.call('verify', nextId)
    if (nextId === 0) passDueMs = clock.elapsed() + PASS_EVERY_MS
  }
  const timer = every(clock, STEP_EVERY_MS, () => {
    if (isBusy || (nextId === 0 && clock.elapsed() < passDueMs)) return
    isBusy = true
    step().then(
      () => (isBusy = false),
      // Closed, dead or damaged: there is nothing more to check.
      () => timer.cancel(),
    )
  })
  return timer
}
