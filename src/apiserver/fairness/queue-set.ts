/**
 * The fair queues of one priority level. The next request is the one that would finish first if all busy queues were
 * served at the same rate. A request's work is its number of seats times its duration. The duration is estimated at the
 * start and corrected at the end. Upstream: KEP-1040, "Fair Queuing for Server Requests".
 */
import type { Clock } from '#lib/clock.ts'
import { InsertionSet } from '#lib/collections/insertion-set.ts'

import { deal, flowHash } from './dealer.ts'
import { type Arrival, NARROW_SEATS, Queue, type Refused, Ticket } from './queue.ts'
import { maxSeatsOf } from './work-estimate.ts'

/** The estimated duration of a request in seconds. */
const GUESS_SECONDS = 0.003
/** So many of ten seats are reserved for narrow requests, unless nothing else runs. */
const RESERVED_OF_TEN = 1
/** The capacity of the cache of hands; it is cleared when full, because flows come and go. */
const MAX_HANDS = 16_384

export interface Queuing {
  readonly queues: number
  readonly handSize: number
  readonly queueLengthLimit: number
}

/** `exempt`: no waiting. `reject`: requests without a seat are rejected. Otherwise they are queued. */
export type LimitMode = 'exempt' | 'reject' | Queuing

/** Observers of a queue set, called after each change. */
export interface SetTotals {
  readonly waiting: number
  readonly executing: number
  readonly seatsWaiting: number
  readonly seatsInUse: number
}

export interface SetObserver {
  noted(totals: SetTotals, nowMs: number): void
}

/** The spread of the virtual start times over all queues with waiting requests. */
export interface DispatchBounds {
  readonly dispatchR: number
  readonly latestS: number
  readonly nextS: readonly [min: number, max: number]
  readonly nextDiscountedS: readonly [min: number, max: number]
}

export class QueueSet implements SetTotals {
  readonly #clock: Clock
  readonly #observer: SetObserver
  #mode: LimitMode
  #limit: number
  /**
   * Seats for narrow requests. Upstream lets no request pass a wide one that waits for seats, so long lists block a
   * whole level. Here narrow requests pass into seats that the wide one could not use, so that it does not wait longer.
   */
  #reserve = 0
  #narrowInUse = 0
  /** By number; created at first use. */
  readonly queues: Map<number, Queue> = new Map()
  /** Queues with waiting requests. */
  readonly #pending = new Set<Queue>()
  /** The number of queues with waiting or running requests. */
  #active = 0
  readonly #hands = new Map<string, readonly number[]>()
  readonly running: InsertionSet<Ticket> = new InsertionSet()
  #enqueues = 0
  /** The number of the queue that was served last. */
  #robin = -1
  currentR = 0
  #syncedMs: number
  waiting = 0
  seatsWaiting = 0
  seatsInUse = 0
  dispatched = 0
  rejected = 0
  cancelled = 0
  bounds: DispatchBounds | undefined

  constructor(clock: Clock, observer: SetObserver, mode: LimitMode) {
    this.#clock = clock
    this.#observer = observer
    this.#mode = mode
    this.#limit = 0
    this.#syncedMs = clock.elapsed()
  }

  get executing(): number {
    return this.running.size
  }

  get isIdle(): boolean {
    return this.waiting === 0 && this.running.size === 0
  }

  get queuing(): Queuing | undefined {
    return typeof this.#mode === 'object' ? this.#mode : undefined
  }

  /** Applies a configuration. Waiting requests stay; a surplus queue is removed when it is empty. */
  configure(mode: LimitMode, limit: number): void {
    const nowMs = this.#sync()
    this.#mode = mode
    this.#limit = limit
    this.#reserve = typeof mode === 'object' ? Math.floor((limit * RESERVED_OF_TEN) / 10) : 0
    this.#hands.clear()
    for (const queue of this.queues.values()) this.#dropIfUnwanted(queue)
    this.#dispatch(nowMs)
    this.#observer.noted(this, nowMs)
  }

  /** A ticket that runs, or waits until `decided` is called; or the reason of the rejection. */
  enter(arrival: Arrival): Ticket | Refused {
    const nowMs = this.#sync()
    const ticket =
      typeof this.#mode === 'object' ? this.#enqueue(arrival, this.#mode, nowMs) : this.#enterDirectly(arrival, nowMs)
    if (typeof ticket === 'string') {
      this.rejected++
      arrival.flow.meter.rejected(ticket, 0)
    }
    this.#observer.noted(this, nowMs)
    return ticket
  }

  /** Removes a waiting request from its queue; a running one stays. */
  cancel(ticket: Ticket): boolean {
    const { queue } = ticket
    if (!ticket.isWaiting || queue === undefined) return false
    const nowMs = this.#sync()
    this.#unqueue(ticket, queue)
    this.#settle(queue)
    queue.bound()
    this.rejected++
    this.cancelled++
    ticket.flow.meter.rejected('time-out', nowMs - ticket.arrivedMs)
    // A request behind it may be narrower.
    this.#dispatch(nowMs)
    this.#observer.noted(this, nowMs)
    return true
  }

  /** The response is complete. The seats may stay occupied for some time. */
  finish(ticket: Ticket): void {
    const nowMs = this.#sync()
    ticket.isRunning = false
    ticket.link?.remove()
    ticket.flow.meter.finished(ticket, nowMs)
    const { queue, work } = ticket
    if (queue !== undefined) {
      queue.executing--
      queue.nextDispatchR -= work.initialSeats * (GUESS_SECONDS - (nowMs - ticket.startedMs) / 1000)
      queue.bound()
      this.#settle(queue)
    }
    if (work.additionalMs <= 0) this.#release(ticket)
    else this.#clock.after(work.additionalMs, () => this.#releaseLater(ticket), { background: true })
    this.#dispatch(nowMs)
    this.#observer.noted(this, nowMs)
  }

  #releaseLater(ticket: Ticket): void {
    const nowMs = this.#sync()
    this.#release(ticket)
    this.#dispatch(nowMs)
    this.#observer.noted(this, nowMs)
  }

  #release({ queue, seats, flow, isNarrow }: Ticket): void {
    this.seatsInUse -= seats
    if (isNarrow) this.#narrowInUse -= seats
    flow.meter.seatsGiven(-seats)
    if (queue === undefined) return
    queue.seatsInUse -= seats
    this.#dropIfUnwanted(queue)
  }

  /** Advances the virtual time to now; call it before any change. */
  #sync(): number {
    const nowMs = this.#clock.elapsed()
    if (this.#active > 0) {
      const rate = Math.min(this.seatsInUse + this.seatsWaiting, this.#limit) / this.#active
      this.currentR += (rate * (nowMs - this.#syncedMs)) / 1000
    }
    this.#syncedMs = nowMs
    return nowMs
  }

  #enterDirectly(arrival: Arrival, nowMs: number): Ticket | Refused {
    const seats = maxSeatsOf(arrival.work)
    if (this.#mode !== 'exempt' && !this.#hasRoomFor(seats)) return 'concurrency-limit'
    const ticket = new Ticket(arrival, undefined, GUESS_SECONDS)
    ticket.arrivedMs = nowMs
    this.#begin(ticket, nowMs)
    return ticket
  }

  #enqueue(arrival: Arrival, queuing: Queuing, nowMs: number): Ticket | Refused {
    const queue = this.#choose(arrival, queuing)
    if (this.seatsInUse >= this.#limit && queue.waiting.size >= queuing.queueLengthLimit) return 'queue-full'
    const ticket = new Ticket(arrival, queue, GUESS_SECONDS)
    ticket.arrivedMs = nowMs
    ticket.arrivalR = this.currentR
    if (!queue.isActive) {
      this.#active++
      queue.isActive = true
      queue.nextDispatchR = this.currentR
    }
    queue.add(ticket)
    this.#pending.add(queue)
    this.waiting++
    this.seatsWaiting += ticket.seats
    arrival.flow.meter.queued(ticket, queue.waiting.size)
    queue.bound()
    this.#dispatch(nowMs)
    return ticket
  }

  /** The queue of the flow's hand with the least work. The start rotates, because hands overlap. */
  #choose({ flow, distinguisher }: Arrival, { queues, handSize }: Queuing): Queue {
    const hand = this.#handOf(flow.name, distinguisher, queues, handSize)
    const offset = this.#enqueues++ % hand.length
    let best: Queue | undefined
    for (let at = 0; at < hand.length; at++) {
      const queue = this.#queueAt(hand[(offset + at) % hand.length] as number)
      if (best === undefined || queue.work < best.work) best = queue
    }
    return best as Queue
  }

  #handOf(schema: string, distinguisher: string, queues: number, handSize: number): readonly number[] {
    const key = `${schema}\0${distinguisher}`
    let hand = this.#hands.get(key)
    if (hand !== undefined) return hand
    if (this.#hands.size >= MAX_HANDS) this.#hands.clear()
    // A single queue needs no dealing.
    hand = queues === 1 ? [0] : deal(flowHash(schema, distinguisher), queues, handSize)
    this.#hands.set(key, hand)
    return hand
  }

  #queueAt(index: number): Queue {
    let queue = this.queues.get(index)
    if (queue === undefined) this.queues.set(index, (queue = new Queue(index)))
    return queue
  }

  /** Dispatches as many requests as there are seats for. */
  #dispatch(nowMs: number): void {
    while (this.#pending.size > 0 && this.seatsInUse < this.#limit) {
      const queue = this.#next()
      if (queue === undefined) return
      const ticket = queue.oldest as Ticket
      this.#robin = queue.index
      this.#noteBounds(queue)
      this.#unqueue(ticket, queue)
      queue.executing++
      queue.seatsInUse += ticket.seats
      ticket.fitInto(this.#limit)
      queue.nextDispatchR += ticket.totalWork
      queue.bound()
      this.#begin(ticket, nowMs)
      ticket.decided?.()
    }
  }

  /** The queue to serve next, if there are seats for its oldest request. */
  #next(): Queue | undefined {
    const first = this.#firstOf(this.#pending)
    const { oldest } = first
    if (this.#hasRoomFor(oldest?.seats ?? 0)) return first
    oldest?.flow.meter.notAccommodated()
    if (this.#pending.size === 1 || this.#narrowInUse >= this.#reserve) return undefined
    const room = Math.min(NARROW_SEATS, this.#reserve - this.#narrowInUse, this.#limit - this.seatsInUse)
    const narrow = [...this.#pending].filter((queue) => (queue.oldest?.seats ?? Infinity) <= room)
    return narrow.length === 0 ? undefined : this.#firstOf(narrow)
  }

  /** The queue whose oldest request would finish first in the virtual world; among equals the next in rotation. */
  #firstOf(queues: Iterable<Queue>): Queue {
    const count = Math.max(1, this.queuing?.queues ?? 1)
    let best: Queue | undefined
    let bestFinish = Infinity
    let bestTurn = Infinity
    for (const queue of queues) {
      const finish = queue.nextDispatchR + (queue.oldest?.totalWork ?? 0)
      const turn = (queue.index - this.#robin - 1 + count) % count
      if (finish > bestFinish || (finish === bestFinish && turn >= bestTurn)) continue
      best = queue
      bestFinish = finish
      bestTurn = turn
    }
    return best as Queue
  }

  #isNarrow(seats: number): boolean {
    return seats <= Math.min(NARROW_SEATS, this.#reserve)
  }

  #hasRoomFor(seats: number): boolean {
    const most = this.#isNarrow(seats) ? this.#limit : this.#limit - this.#reserve
    // Wider than the limit: it runs alone.
    return seats > most ? this.running.size === 0 : this.seatsInUse + seats <= most
  }

  #begin(ticket: Ticket, nowMs: number): void {
    ticket.startedMs = nowMs
    ticket.isRunning = true
    ticket.link = this.running.add(ticket)
    this.dispatched++
    this.seatsInUse += ticket.seats
    ticket.isNarrow = this.#isNarrow(ticket.seats)
    if (ticket.isNarrow) this.#narrowInUse += ticket.seats
    ticket.flow.meter.seatsGiven(ticket.seats)
    ticket.flow.meter.started(ticket, this.#mode !== 'exempt')
  }

  #unqueue(ticket: Ticket, queue: Queue): void {
    queue.remove(ticket)
    if (queue.waiting.size === 0) this.#pending.delete(queue)
    this.waiting--
    this.seatsWaiting -= ticket.seats
    ticket.flow.meter.unqueued(ticket)
  }

  /** An empty queue has no part in the virtual world. */
  #settle(queue: Queue): void {
    if (!queue.isActive || queue.waiting.size > 0 || queue.executing > 0) return
    queue.isActive = false
    this.#active--
    this.#dropIfUnwanted(queue)
  }

  #dropIfUnwanted(queue: Queue): void {
    if (queue.index < (this.queuing?.queues ?? 0) || queue.isActive || queue.seatsInUse > 0) return
    this.queues.delete(queue.index)
  }

  #noteBounds({ nextDispatchR: latestS }: Queue): void {
    let [low, high, lowLess, highLess] = [Infinity, 0, Infinity, 0]
    for (const { nextDispatchR, seatsInUse } of this.#pending) {
      const discounted = nextDispatchR - seatsInUse * GUESS_SECONDS
      low = Math.min(low, nextDispatchR)
      high = Math.max(high, nextDispatchR)
      lowLess = Math.min(lowLess, discounted)
      highLess = Math.max(highLess, discounted)
    }
    this.bounds = { dispatchR: this.currentR, latestS, nextS: [low, high], nextDiscountedS: [lowLess, highLess] }
  }
}
