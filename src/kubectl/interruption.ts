/**
 * Handles signals as upstream does: a signal ends kubectl like any program. Commands that wait for the cluster or use
 * the terminal exit with 1.
 */
import { onAbort, unlessAborted } from '#lib/abort.ts'
import type { Clock, Timer } from '#lib/clock.ts'

import { ExitError } from './errors.ts'

/** True if the error is the abort of the signal. */
export function isStop(error: unknown, signal: AbortSignal): boolean {
  if (!signal.aborted) return false
  for (let at: unknown = error; at instanceof Error; at = at.cause) if (at === signal.reason) return true
  return false
}

/** Waits for a promise. Throws ExitError without a message if the signal aborts it. */
export async function interruptible<T>(signal: AbortSignal, wait: () => Promise<T>): Promise<T> {
  try {
    return await wait()
  } catch (error) {
    throw isStop(error, signal) ? new ExitError(1) : error
  }
}

/** The time for cleanup: temporary files, the mode of the terminal. */
const TIDYING_MS = 250

/** Runs the work; after the signal it gets only a short time to finish, even if it ignores the signal. */
export async function endedBy<T>(signal: AbortSignal, clock: Clock, work: Promise<T>): Promise<T> {
  const late = new AbortController()
  let timer: Timer | undefined
  const release = onAbort(signal, () => {
    timer = clock.after(TIDYING_MS, () => late.abort(signal.reason))
  })
  try {
    return await unlessAborted(late.signal, work)
  } finally {
    release()
    timer?.cancel()
  }
}
