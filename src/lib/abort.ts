/** Helpers for functions that take an AbortSignal. */
import { InsertionSet } from './collections/insertion-set.ts'

/** The error for an aborted `signal`: its reason, wrapped if it is not an Error. */
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
  let tasks = waiting.get(signal)
  if (tasks === undefined) {
    waiting.set(signal, (tasks = new InsertionSet()))
    signal.addEventListener('abort', runWaiting, { once: true })
  }
  const link = tasks.add(task)
  return () => {
    if (!link.remove() || tasks.size > 0) return
    waiting.delete(signal)
    signal.removeEventListener('abort', runWaiting)
  }
}

/** Resolves when `signal` is aborted. */
export function aborted(signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    onAbort(signal, resolve)
  })
}

/** Waits for `work` until `signal` is aborted; a later result is ignored. */
export async function unlessAborted<T>(signal: AbortSignal, work: Promise<T>): Promise<T> {
  let release = (): void => undefined
  const ended = new Promise<never>((_, reject) => {
    release = onAbort(signal, () => reject(abortError(signal)))
  })
  try {
    return await Promise.race([work, ended])
  } finally {
    release()
  }
}

/**
 * One listener for all waiters of a signal: adding one to n others takes n comparisons, and thousands wait on a
 * program's signal.
 */
const waiting = new WeakMap<AbortSignal, InsertionSet<() => void>>()

function runWaiting({ target }: Event): void {
  for (const task of waiting.get(target as AbortSignal) ?? []) {
    try {
      task()
    } catch (error) {
      // Like a listener, its error does not affect the others.
      process.nextTick(() => {
        throw error
      })
    }
  }
}
