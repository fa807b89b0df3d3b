/** One queue of a priority level and its requests. */
import type { RequestInfo } from '#auth/request-info.ts'
import type { User } from '#auth/user.ts'
import { type Link, InsertionSet } from '#lib/collections/insertion-set.ts'

import { maxSeatsOf, type WorkEstimate } from './work-estimate.ts'

/** Requests with at most this many seats are narrow: reads and writes of one object, pages. */
export const NARROW_SEATS = 2

/** The reasons of rejections in metrics. */
export type Refused = 'concurrency-limit' | 'queue-full'

/** Observers of the requests of one flow schema. */
export interface FlowObserver {
  /** `length` of the queue, including this request. */
  queued(ticket: Ticket, length: number): void
  unqueued(ticket: Ticket): void
  /** `waited`: the level has queues. */
  started(ticket: Ticket, waited: boolean): void
  finished(ticket: Ticket, nowMs: number): void
  seatsGiven(seats: number): void
  /** `waitedMs` before it was dispatched. */
  rejected(reason: Refused | 'time-out', waitedMs: number): void
  notAccommodated(): void
}

export interface Arrival {
  readonly flow: { readonly name: string; readonly meter: FlowObserver }
  /** The flow within its schema; empty if there is only one. */
  readonly distinguisher: string
  readonly work: WorkEstimate
  readonly user: User
  readonly info: RequestInfo
}

/** A waiting or running request. */
export class Ticket {
  readonly flow: Arrival['flow']
  readonly distinguisher: string
  readonly user: User
  readonly info: RequestInfo
  /** Absent in levels without queues. */
  readonly queue: Queue | undefined
  readonly seats: number
  /** In seat-seconds. */
  readonly totalWork: number
  work: WorkEstimate
  arrivedMs = 0
  startedMs = 0
  arrivalR = 0
  isWaiting = false
  isRunning = false
  /** Links in the list of waiting, then of running requests. */
  link: Link<Ticket> | undefined
  /** True if it occupies seats reserved for narrow requests. */
  isNarrow = false
  /** Called once when it starts, unless it started at once. */
  decided: (() => void) | undefined

  constructor({ flow, distinguisher, work, user, info }: Arrival, queue: Queue | undefined, guessSeconds: number) {
    this.flow = flow
    this.distinguisher = distinguisher
    this.user = user
    this.info = info
    this.queue = queue
    this.work = work
    this.seats = maxSeatsOf(work)
    this.totalWork = work.initialSeats * guessSeconds + (work.finalSeats * work.additionalMs) / 1000
  }

  /** The same work on the available seats. */
  fitInto(limit: number): void {
    const { initialSeats, finalSeats, additionalMs } = this.work
    if (finalSeats <= limit || limit === 0) return
    this.work = { initialSeats, finalSeats: limit, additionalMs: (finalSeats * additionalMs) / limit }
  }
}

export class Queue {
  readonly index: number
  /** In order of arrival. */
  readonly waiting: InsertionSet<Ticket> = new InsertionSet()
  /** The sums over waiting requests, in seat-seconds and in seats. */
  work = 0
  initialSeats = 0
  seats = 0
  /** The number of running requests. */
  executing = 0
  /** The seats of running requests, including those just finished. */
  seatsInUse = 0
  /** The virtual start time of the oldest request. */
  nextDispatchR = 0
  /** True if requests wait or run. */
  isActive = false

  constructor(index: number) {
    this.index = index
  }

  get oldest(): Ticket | undefined {
    return this.waiting.first?.value
  }

  add(ticket: Ticket): void {
    ticket.isWaiting = true
    ticket.link = this.waiting.add(ticket)
    this.work += ticket.totalWork
    this.initialSeats += ticket.work.initialSeats
    this.seats += ticket.seats
  }

  remove(ticket: Ticket): void {
    ticket.isWaiting = false
    ticket.link?.remove()
    // Rounding errors must not accumulate.
    this.work = this.waiting.size === 0 ? 0 : this.work - ticket.totalWork
    this.initialSeats -= ticket.work.initialSeats
    this.seats -= ticket.seats
  }

  /** No request starts before its arrival: a queue that uses less than its share accumulates no credit. */
  bound(): void {
    const { oldest } = this
    if (oldest !== undefined && this.nextDispatchR < oldest.arrivalR) this.nextDispatchR = oldest.arrivalR
  }
}
