/**
 * A runtime that is not waited for without end: a call that takes longer than it may has failed, whatever comes of it later,
 * so that one that hangs keeps nobody but whoever asked.
 */
import { unlessAborted } from '#lib/abort.ts'
import { type Clock, sleep } from '#lib/clock.ts'
import type { CallOptions } from '#lib/grpc/client.ts'
import { GrpcError } from '#lib/grpc/status.ts'

import { METHODS, type Runtime } from './runtime.ts'

/** `runtimeRequestTimeout`, when nobody says. */
const LIMIT_MS = 120_000

interface Timed {
  readonly timeout?: number | bigint
}

/** Undefined: as long as it takes, for whoever may take it back. */
function limitMsOf(name: string, { timeout = 0 }: Timed, usualMs: number): number | undefined {
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

type AnyCall = (request: Timed, options?: CallOptions) => Promise<unknown>

export function withDeadlines(runtime: Runtime, clock: Clock, usualMs: number = LIMIT_MS): Runtime {
  const calls = Object.keys(METHODS).map((name) => {
    const call = runtime[name as keyof Runtime] as unknown as AnyCall
    if (name === 'getContainerEvents') return [name, call]
    const limited: AnyCall = (request, options) => {
      const limitMs = limitMsOf(name, request, usualMs)
      const work = call(request, limitMs === undefined ? options : { timeoutMs: limitMs, ...options })
      return within(clock, work, { limitMs, signal: options?.signal })
    }
    return [name, limited]
  })
  return Object.fromEntries(calls) as Runtime
}

interface Patience {
  readonly limitMs: number | undefined
  readonly signal: AbortSignal | undefined
}

/** The runtime has been told as well, where it can be; it may not listen. */
async function within<T>(clock: Clock, work: Promise<T>, { limitMs, signal }: Patience): Promise<T> {
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
