/**
 * Concurrency filter: gets a seat for the request from priority and fairness, or counts it against the limit of
 * concurrent requests. Throws StatusError 429.
 */
import type { ActiveRequest } from '../active-request.ts'
import type { WholeAnswer } from '../call.ts'
import type { Refusal, Seat, SeatAllocation } from '../request-filters.ts'
import type { RequestServerOptions } from '../server-options.ts'
import type { CreateFilter } from './filter.ts'

export const seats: CreateFilter = (options) => {
  const acquire = options.fairness === undefined ? byCount(options) : byFairness(options, options.fairness)
  return acquire && ((request) => settleWith(request, acquire(request)))
}

type Acquire = (request: ActiveRequest) => Seat | Refusal | Promise<Seat | Refusal>

function settleWith(request: ActiveRequest, seat: Seat | Refusal | Promise<Seat | Refusal>): void | Promise<void> {
  return seat instanceof Promise ? seat.then((granted) => settle(request, granted)) : settle(request, seat)
}

function settle(request: ActiveRequest, seat: Seat | Refusal): void {
  if ('retryAfterSeconds' in seat) {
    request.meter.terminated(429)
    request.answer = tooManyRequests(seat.retryAfterSeconds)
  } else {
    request.meter.passed('priorityandfairness')
    request.seat = seat
  }
}

function nothing(): void {}

const UNLIMITED_SEAT: Seat = { release: nothing }

function byCount({ inflight }: RequestServerOptions): Acquire | undefined {
  return (
    inflight &&
    (({ user, info }) => {
      const release = inflight.enter(user, info)
      return release === undefined ? { retryAfterSeconds: 1 } : { release }
    })
  )
}

/** The maximum time in a queue, however long the request's timeout is. */
const MAX_WAIT_MS = 60_000

/** A request waits for at most a quarter of its timeout, counted from its arrival. */
function byFairness({ clock }: RequestServerOptions, fairness: SeatAllocation): Acquire {
  return ({ user, info, query, headers, limitMs, arrivedMs, exchange }) => {
    const waitMs = Math.min(limitMs / 4, MAX_WAIT_MS) - (clock.elapsed() - arrivedMs)
    const signal = (): AbortSignal => exchange.signal
    return fairness.acquire({ user, info, query, headers, waitMs, signal }) ?? UNLIMITED_SEAT
  }
}

/** Upstream's plain text: encoding a Status would take time. */
function tooManyRequests(retryAfterSeconds: number): WholeAnswer {
  return {
    status: 429,
    contentType: 'text/plain; charset=utf-8',
    body: 'Too many requests, please try again later.\n',
    headers: { 'Retry-After': String(retryAfterSeconds), 'X-Content-Type-Options': 'nosniff' },
  }
}
