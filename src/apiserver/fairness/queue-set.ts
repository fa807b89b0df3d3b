/**
 * Fair queuing of one priority level. Work is measured in seat-seconds: a request is that many seats times as long as it
 * takes. In a virtual world every queue with something to do is served at the same time and at the same rate; `R` says
 * how much each of them has been given so far. The request that would be done first in that world is let in first in
 * this one. How long a request takes is guessed when it begins, and put right when it is done.
 *
 * Upstream: KEP-1040, "Fair Queuing for Server Requests". Everything here is done in constant time but for finding the
 * next request, which looks at each queue where somebody waits.
 */
import type { Clock } from '#lib/clock.ts'
import { Roll } from '#lib/roll.ts'

import { deal, flowHash } from './dealer.ts'
import { type Arrival, NARROW_SEATS, Queue, type Refused, Ticket } from './queue.ts'
import { maxSeatsOf } from './work-estimate.ts'

/** How long a request is taken to last until it is known, in seconds. */
const GUESS_SECONDS = 0.003
/** So many of ten seats are never taken by wide requests, unless there is nothing else. */
const RESERVED_OF_TEN = 1
/** Hands are remembered, and all forgotten when there are as many as this: flows come and go. */
const MAX_HANDS = 16_384

export interface Queuing {
  readonly queues: number
  readonly handSize: number
  readonly queueLengthLimit: number
}

/** `exempt`: nobody waits. `reject`: who finds no seat is turned away. Otherwise they wait in queues. */
export type LimitMode = 'exempt' | 'reject' | Queuing

/** What goes on in a set, told after each change. */
export interface SetTotals {
  readonly waiting: number
  readonly executing: number
  readonly seatsWaiting: number
  readonly seatsInUse: number
}

export interface SetObserver {
  noted(totals: SetTotals, nowMs: number): void
}

/** The spread, over all queues where somebody waits, of where they are in the virtual world. */
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
   * Seats for narrow requests. Upstream lets nobody past a wide request that waits for
   * seats to come free; whoever fills a level with long lists holds up everybody in it. Here narrow ones pass, into seats
   * that the wide one could not have had, so that it waits no longer for them.
   */
  #reserve = 0
  #narrowInUse = 0
  /** By number; made when first used. */
  readonly queues: Map<number, Queue> = new Map()
  /** Where somebody waits. */
  readonly #pending = new Set<Queue>()
  /** How many queues have somebody waiting or running. */
  #active = 0
  readonly #hands = new Map<string, readonly number[]>()
  readonly running: Roll<Ticket> = new Roll()
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

  /** From now on. Who waits goes on waiting; a queue that is too many is gone when it is empty. */
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

  /** A ticket that is running, or waits until `decided` is called; or why there is none. */
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

  /** Takes one who waits out of the queue; who is running already stays. */
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
    // Whoever stood behind may be smaller.
    this.#dispatch(nowMs)
    this.#observer.noted(this, nowMs)
    return true
  }

  /** The answer is made. The seats may stay taken for some time. */
  finish(ticket: Ticket): void {
    const nowMs = this.#sync()
    ticket.isRunning = false
    ticket.link?.leave()
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

  /** Moves the virtual world on to now; before anything is changed. */
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

  /** Of the flow's hand the queue with the least work. Which is looked at first goes round: hands overlap. */
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
    // With one queue there is nothing to deal.
    hand = queues === 1 ? [0] : deal(flowHash(schema, distinguisher), queues, handSize)
    this.#hands.set(key, hand)
    return hand
  }

  #queueAt(index: number): Queue {
    let queue = this.queues.get(index)
    if (queue === undefined) this.queues.set(index, (queue = new Queue(index)))
    return queue
  }

  /** As many as there is room for. */
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

  /** The queue to serve next, if there is room for its oldest request. */
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

  /** The queue whose oldest request would be done first in the virtual world; of equals the one whose turn it is. */
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
    // Wider than everything there is: it runs alone.
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

  /** A queue without anybody in it has no part in the virtual world. */
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
