/** Waits until an object satisfies a predicate, over any number of lost connections. */
import type { Kind } from '#apis/kinds.ts'
import { secureRandom, type Random } from '#lib/random.ts'
import type { KubeObject } from '#meta/object.ts'

import type { ApiClient, Where } from './api-client.ts'
import { follow } from './reflector.ts'

export interface UntilOptions<T extends KubeObject> extends Where {
  readonly client: ApiClient
  readonly kind: Kind<T>
  /** Default: no limit. */
  readonly timeoutMs?: number
  readonly signal?: AbortSignal
  readonly random?: Random
  /** Gets errors that are retried. */
  readonly onError?: (error: unknown) => void
}

/** The timeout passed before the predicate was true. */
export class UntilTimeout extends Error {
  override readonly name = 'UntilTimeout'
}

/**
 * Resolves with the first state that satisfies the predicate, which gets undefined while the object does not exist.
 * Rejects with UntilTimeout, the signal's reason, or the predicate's error.
 */
export async function until<T extends KubeObject>(
  { client, kind, namespace, name, timeoutMs, signal, random = secureRandom, onError }: UntilOptions<T>,
  predicate: (object: T | undefined) => boolean,
): Promise<T | undefined> {
  const done = new AbortController()
  const outcome = Promise.withResolvers<T | undefined>()
  const end = (settle: () => void): void => {
    settle()
    done.abort()
  }
  const look = (object: T | undefined): void => {
    if (done.signal.aborted) return
    try {
      if (predicate(object)) end(() => outcome.resolve(object))
    } catch (error) {
      end(() => outcome.reject(error))
    }
  }
  const stop = (): void => end(() => outcome.reject(signal?.reason as Error))
  if (signal?.aborted === true) stop()
  signal?.addEventListener('abort', stop, { once: true })
  const late = (): void => end(() => outcome.reject(new UntilTimeout('timed out waiting for the condition')))
  const timer = timeoutMs === undefined ? undefined : client.clock.after(timeoutMs, late)
  const selection = { fieldSelector: `metadata.name=${name}`, ...(namespace !== undefined && { namespace }) }
  const following = follow(
    { client, kind, random, selection, signal: done.signal },
    {
      replace: (objects) => look(objects[0]),
      change: ({ type, object }) => look(type === 'DELETED' ? undefined : object),
      failed: (error) => onError?.(error),
    },
  )
  try {
    return await outcome.promise
  } finally {
    timer?.cancel()
    signal?.removeEventListener('abort', stop)
    await following
  }
}
