/** Small things everything that takes an AbortSignal needs. */
import { Roll } from './roll.ts'

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
  let tasks = waiting.get(signal)
  if (tasks === undefined) {
    waiting.set(signal, (tasks = new Roll()))
    signal.addEventListener('abort', runWaiting, { once: true })
  }
  const link = tasks.add(task)
  return () => {
    if (!link.leave() || tasks.size > 0) return
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

/** Waits for `work` until `signal` is aborted: what comes of it later is nobody's. */
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

/** One listener for all who wait on a signal: to add one to n others takes n comparisons, and thousands wait on a program's. */
const waiting = new WeakMap<AbortSignal, Roll<() => void>>()

function runWaiting({ target }: Event): void {
  for (const task of waiting.get(target as AbortSignal) ?? []) {
    try {
      task()
    } catch (error) {
      // As with listeners: it keeps no other from its turn.
      process.nextTick(() => {
        throw error
      })
    }
  }
}
