/** Ends a request of a client that its caller has aborted, or that takes too long. */
import { onAbort } from '../abort.ts'
import type { Clock } from '../clock.ts'
import { HttpError } from './http-error.ts'

/** The local abort of a request, until it is over. */
export interface Limits {
  /** Set once; the request is destroyed with it. */
  failure: HttpError | undefined
  onFail: ((error: HttpError) => void) | undefined
  release(): void
}

interface LimitOptions {
  readonly signal?: AbortSignal
  readonly timeoutMs?: number
}

export function limitRequest(clock: Clock, { signal, timeoutMs }: LimitOptions): Limits {
  const fail = (error: HttpError): void => {
    limits.failure ??= error
    limits.onFail?.(limits.failure)
  }
  const limits: Limits = { failure: undefined, onFail: undefined, release: () => undefined }
  const timer =
    timeoutMs === undefined
      ? undefined
      : clock.after(timeoutMs, () => fail(new HttpError('timeout', `The request took longer than ${timeoutMs} ms`)))
  const unhook = onAbort(signal, () =>
    fail(new HttpError('aborted', 'The request was given up', { cause: signal?.reason })),
  )
  limits.release = () => {
    timer?.cancel()
    unhook()
  }
  return limits
}

/** Says how to end what is going on now; at once when it is too late already. */
export function onFail(limits: Limits, end: (error: HttpError) => void): void {
  limits.onFail = end
  if (limits.failure !== undefined) end(limits.failure)
}

/** Waits for `task`, but no longer than the request may take. The task itself goes on for others. */
export function giveUpWith<T>(limits: Limits, task: Promise<T>): Promise<T> {
  return new Promise((resolve, reject) => {
    onFail(limits, reject)
    task.then(resolve, reject)
  })
}
