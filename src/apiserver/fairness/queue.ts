/** One queue of a priority level, and the requests in it. */
import { type Link, Roll } from '#lib/roll.ts'

import type { User } from '../registry/resource.ts'
import type { RequestInfo } from '../request-info.ts'
import { maxSeatsOf, type WorkEstimate } from './work-estimate.ts'

/** What takes no more is narrow: reads and writes of one object, pages. */
export const NARROW_SEATS = 2

/** Why somebody is turned away, as metrics name it. */
export type Refused = 'concurrency-limit' | 'queue-full'

/** What is told of the requests of one flow schema. */
export interface FlowObserver {
  /** `length` of the queue, with this one. */
  queued(ticket: Ticket, length: number): void
  unqueued(ticket: Ticket): void
  /** `waited`: in a level where one may have to. */
  started(ticket: Ticket, waited: boolean): void
  finished(ticket: Ticket, nowMs: number): void
  seatsGiven(seats: number): void
  /** `waitedMs` before. */
  rejected(reason: Refused | 'time-out', waitedMs: number): void
  notAccommodated(): void
}

export interface Arrival {
  readonly flow: { readonly name: string; readonly meter: FlowObserver }
  /** Which of the flows of its schema; empty when there is one. */
  readonly distinguisher: string
  readonly work: WorkEstimate
  readonly user: User
  readonly info: RequestInfo
}

/** A request that was let in, or waits to be. */
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
  /** Among those who wait, then among those who run. */
  link: Link<Ticket> | undefined
  /** It took seats that wide requests do not get. */
  isNarrow = false
  /** Called once when it begins, unless that was at once. */
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

  /** The same work on as many seats as there are. */
  fitInto(limit: number): void {
    const { initialSeats, finalSeats, additionalMs } = this.work
    if (finalSeats <= limit || limit === 0) return
    this.work = { initialSeats, finalSeats: limit, additionalMs: (finalSeats * additionalMs) / limit }
  }
}

export class Queue {
  readonly index: number
  /** In order of arrival. */
  readonly waiting: Roll<Ticket> = new Roll()
  /** Of those who wait, in seat-seconds and in seats. */
  work = 0
  initialSeats = 0
  seats = 0
  /** How many of it are running. */
  executing = 0
  /** Of those who are running, or have just been. */
  seatsInUse = 0
  /** When the oldest begins in the virtual world. */
  nextDispatchR = 0
  /** Somebody waits or runs. */
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
    ticket.link?.leave()
    // What floating-point numbers leave over must not add up.
    this.work = this.waiting.size === 0 ? 0 : this.work - ticket.totalWork
    this.initialSeats -= ticket.work.initialSeats
    this.seats -= ticket.seats
  }

  /** Nobody begins before they came: a queue that uses less than its share saves nothing up for later. */
  bound(): void {
    const { oldest } = this
    if (oldest !== undefined && this.nextDispatchR < oldest.arrivalR) this.nextDispatchR = oldest.arrivalR
  }
}
