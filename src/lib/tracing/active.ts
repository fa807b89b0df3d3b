/** Stores the active span of an asynchronous call, so that outgoing requests can continue its trace. */
import { AsyncLocalStorage } from 'node:async_hooks'

import type { Attributes, Span } from './span.ts'

/** Emptied when it is over, so that what was begun meanwhile and goes on is no part of it. */
export interface Scope {
  span: Span | undefined
}

const scopes = new AsyncLocalStorage<Scope>()

export function activeSpan(): Span | undefined {
  return scopes.getStore()?.span
}

/** Runs `work`, and all that follows from it, within the scope. */
export function withScope<T>(scope: Scope, work: () => T): T {
  return scopes.run(scope, work)
}

/**
 * Runs `work` as a child span of that name, which ends with its result. Without tracing the attributes are not
 * evaluated.
 */
export function withinSpan<T>(name: string, attributes: () => Attributes, work: () => Promise<T>): Promise<T> {
  const span = activeSpan()?.child(name, { attributes: attributes() })
  if (span === undefined) return work()
  return withSpan(span, async () => {
    const done = await work()
    span.event('Request completed')
    return done
  })
}

/** Runs `work` within the span, and ends the span when it is done. */
async function withSpan<T>(span: Span, work: () => Promise<T>): Promise<T> {
  const scope: Scope = { span }
  try {
    return await scopes.run(scope, work)
  } finally {
    scope.span = undefined
    span.end()
  }
}
