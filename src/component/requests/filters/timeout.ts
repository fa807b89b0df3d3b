/**
 * Timeout filter: limits the duration of a request to the client's `timeout` parameter, but never beyond the server's
 * limit.
 */
import { durationMs } from '#lib/go/duration.ts'
import { badRequestError } from '#meta/status-errors.ts'

import type { CreateFilter } from './filter.ts'

/** The query of a long-running request, such as an exec, is for the backend. */
export const timeout: CreateFilter = () => (request) => {
  const requested = request.query.get('timeout')
  if (requested === null || request.isLongRunning) return
  const requestedMs = parseTimeout(requested)
  if (requestedMs > 0) request.limitMs = Math.min(request.limitMs, requestedMs)
}

function parseTimeout(text: string): number {
  try {
    return durationMs(text)
  } catch (cause) {
    throw badRequestError(`invalid timeout specified in the request URL - ${(cause as Error).message}`)
  }
}
