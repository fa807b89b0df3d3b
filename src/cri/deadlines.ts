/**
 * Adds timeouts to runtime calls. A call that exceeds its limit fails, even if the runtime answers later, so that a
 * hung call blocks only its caller.
 */
import { unlessAborted } from '#lib/abort.ts'
import { type Clock, sleep } from '#lib/clock.ts'
import type { CallOptions } from '#lib/grpc/client.ts'
import { GrpcError } from '#lib/grpc/status.ts'

import { METHODS, type Runtime } from './runtime.ts'

/** Default of `runtimeRequestTimeout`. */
const LIMIT_MS = 120_000

interface TimedRequest {
  readonly timeout?: number | bigint
}

/** Undefined: no limit; the caller may abort the call. */
function limitMsOf(name: string, { timeout = 0 }: TimedRequest, usualMs: number): number | undefined {
  switch (name) {
    case 'getContainerEvents':
    case 'pullImage':
      return undefined
    case 'execSync':
      return Number(timeout) === 0 ? undefined : usualMs + Number(timeout) * 1000
    default:
      return usualMs + Number(timeout) * 1000
  }
}

type TimedCall = (request: TimedRequest, options?: CallOptions) => Promise<unknown>

export function withDeadlines(runtime: Runtime, clock: Clock, usualMs: number = LIMIT_MS): Runtime {
  const calls = Object.keys(METHODS).map((name) => {
    const call = runtime[name as keyof Runtime] as unknown as TimedCall
    if (name === 'getContainerEvents') return [name, call]
    const limited: TimedCall = (request, options) => {
      const limitMs = limitMsOf(name, request, usualMs)
      const work = call(request, limitMs === undefined ? options : { timeoutMs: limitMs, ...options })
      return within(clock, work, { limitMs, signal: options?.signal })
    }
    return [name, limited]
  })
  return Object.fromEntries(calls) as Runtime
}

interface CallLimits {
  readonly limitMs: number | undefined
  readonly signal: AbortSignal | undefined
}

/** The runtime also gets the deadline, but may ignore it. */
async function within<T>(clock: Clock, work: Promise<T>, { limitMs, signal }: CallLimits): Promise<T> {
  const done = new AbortController()
  const waits: Promise<T>[] = [work]
  if (limitMs !== undefined) {
    const late = sleep(clock, limitMs, done.signal, { background: true })
    waits.push(late.then(() => Promise.reject(new GrpcError('deadlineExceeded', 'context deadline exceeded'))))
  }
  for (const wait of waits) wait.catch(() => undefined)
  try {
    const first = Promise.race(waits)
    return await (signal === undefined ? first : unlessAborted(signal, first))
  } catch (error) {
    if (signal?.aborted !== true) throw error
    throw new GrpcError('cancelled', 'context canceled', { cause: error })
  } finally {
    done.abort()
  }
}
