/** The interface of request filters, and the loop that runs them before the handler. */
import type { ActiveRequest } from '../active-request.ts'
import type { RequestServerOptions } from '../server-options.ts'

/**
 * Refuses a request by throwing, or rejecting with, a StatusError, or by setting `request.answer`. Returns a promise only if
 * it has to wait: most requests pass all filters in one go, and each promise would cost as much as a filter.
 */
export type Filter = (request: ActiveRequest) => void | Promise<void>

/** Undefined: a server with these options needs no such filter. */
export type CreateFilter = (options: RequestServerOptions) => Filter | undefined

/** Runs the filters in order until one of them sets an answer. */
export function runFilters(filters: readonly Filter[], request: ActiveRequest, from = 0): void | Promise<void> {
  for (let at = from; at < filters.length; at++) {
    const pending = filters[at]?.(request)
    if (pending !== undefined) {
      request.hasWaited = true
      return pending.then(() => (request.answer === undefined ? runFilters(filters, request, at + 1) : undefined))
    }
    if (request.answer !== undefined) return
  }
}
