/** Small things everything that takes an AbortSignal needs. */

/** What to reject with when `signal` is aborted: its reason, wrapped if it is not an Error. */
export function abortError(signal: AbortSignal): Error {
  const reason: unknown = signal.reason
  return reason instanceof Error ? reason : new Error('Aborted', { cause: reason })
}

/**
 * Runs `task` once when `signal` is aborted, at once if it is already. Returns a function that takes this back, to be
 * called when the wait is over: a signal often lives far longer than what waits on it.
 */
export function onAbort(signal: AbortSignal | undefined, task: () => void): () => void {
  if (signal === undefined) return () => undefined
  if (signal.aborted) {
    task()
    return () => undefined
  }
  signal.addEventListener('abort', task, { once: true })
  return () => signal.removeEventListener('abort', task)
}
