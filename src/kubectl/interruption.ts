/**
 * Being interrupted, as upstream has it: a signal ends kubectl as it ends any program, except that whoever waits for the
 * cluster, or has the terminal, ends with 1.
 */
import { onAbort, unlessAborted } from '#lib/abort.ts'
import type { Clock, Timer } from '#lib/clock.ts'

import { ExitError } from './errors.ts'

/** Whether the error is but the abort coming back. */
export function isStop(error: unknown, signal: AbortSignal): boolean {
  if (!signal.aborted) return false
  for (let at: unknown = error; at instanceof Error; at = at.cause) if (at === signal.reason) return true
  return false
}

/** Waits for something. Throws ExitError without a word when that is interrupted. */
export async function interruptible<T>(signal: AbortSignal, wait: () => Promise<T>): Promise<T> {
  try {
    return await wait()
  } catch (error) {
    throw isStop(error, signal) ? new ExitError(1) : error
  }
}

/** For taking back what was begun: files in a temporary folder, the mode of the terminal. */
const TIDYING_MS = 250

/** The same work, but when it is interrupted it has only a moment left, even if it does not listen. */
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
