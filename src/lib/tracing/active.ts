/**
 * The span within which something happens, without anybody passing it on. Whoever asks others looks here; where nothing is
 * traced there is never one, and looking costs next to nothing. The rest of tracing is loaded only where it is asked for.
 */
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
 * Runs `work` as a part of what is going on, by that name, which is told when it has succeeded. Where nothing is traced the
 * attributes are not even asked for.
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
