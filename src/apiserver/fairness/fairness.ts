/**
 * API priority and fairness: how many requests run at once, and who is next. Each request belongs to a flow of a flow
 * schema, and so to a priority level, which has a number of seats; who finds none waits fairly or is turned away.
 * Follows what is stored, in step; what must be there and is not is imagined. Where nobody has to wait, nothing waits.
 */
import { type Clock, every } from '#lib/clock.ts'
import { turn } from '#lib/slices.ts'

import { isLongRunning, type Load, requestKindOf } from '../filters/inflight.ts'
import type { Registry } from '../registry/registry.ts'
import type { User } from '../registry/resource.ts'
import type { RequestInfo } from '../request-info.ts'
import { type Configuration, type ConfigurationParts, followConfiguration } from './configuration.ts'
import { registerLevelMetrics } from './level-metrics.ts'
import type { PriorityLevel } from './level.ts'
import { BORROWING_PERIOD_MS } from './levels.ts'
import { KindMeter } from './meters.ts'
import { NARROW_SEATS, type Ticket } from './queue.ts'
import { createWatchCounts, type WatchCounts } from './watch-counts.ts'
import { createEstimate, type Estimate, maxSeatsOf } from './work-estimate.ts'

/** A request that wants to be let in. */
export interface Entering {
  readonly user: User
  readonly info: RequestInfo
  readonly query: URLSearchParams
  /** How long it may wait. */
  readonly waitMs: number
  /** Aborted when its client has gone; asked for only when it has to wait. */
  readonly signal: () => AbortSignal
  /** Of its answer. */
  readonly headers: string[]
}

/** It was let in. */
export interface Place {
  /** When the request is answered; a watch, when it has begun. */
  leave(): void
  /** Once, of a watch: when it is over altogether. */
  end?(): void
}

/** It was turned away. */
export interface Refusal {
  readonly retryAfterSeconds: number
}

export interface Fairness extends Load {
  /** A promise only of who has to wait. Undefined: of no concern, as connections that are handed on. */
  enter(request: Entering): Place | Refusal | undefined | Promise<Place | Refusal>
  /** For those who look after the server; by name. */
  levels(): readonly PriorityLevel[]
  close(): void
}

export interface FairnessParts extends ConfigurationParts {
  readonly registry: Pick<Registry, 'storeOf' | 'find'>
  readonly isEnabled: (gate: string) => boolean
}

export function createFairness(parts: FairnessParts): Fairness {
  const { clock, meters, registry, isEnabled } = parts
  const kinds = new KindMeter(meters, clock.elapsed())
  const configuration = followConfiguration(parts, kinds)
  const watches = createWatchCounts()
  const estimate = createEstimate({
    bySize: isEnabled('SizeBasedListCostEstimate'),
    watchList: isEnabled('WatchList'),
    collectionOf: ({ group, version, resource }) => registry.find({ group, version, resource })?.store.collection,
    watchersOf: (info) => watches.interestedIn(info),
  })
  const timer = every(clock, BORROWING_PERIOD_MS, () => configuration.levels().share())
  registerLevelMetrics(meters, clock, { levels: () => configuration.levels(), kinds })
  const entrance = new Entrance({ clock, kinds, configuration, estimate, watches })
  return {
    enter: (request) => entrance.enter(request),
    running: (kind) => kinds.count(kind, 'executing'),
    waiting: (kind) => kinds.count(kind, 'waiting'),
    levels: () => configuration.levels().all(),
    close() {
      timer.cancel()
      configuration.close()
    },
  }
}

interface EntranceParts {
  readonly clock: Clock
  readonly kinds: KindMeter
  readonly configuration: Configuration
  readonly estimate: Estimate
  readonly watches: WatchCounts
}

/** On one thread a list holds up everybody: one of some size begins when it has a turn, of which there are few at a time. */
function laneOf({ info, work }: Ticket): 'short' | 'long' | undefined {
  if (info.verb !== 'list' || work.initialSeats === 1) return undefined
  return work.initialSeats > NARROW_SEATS ? 'long' : 'short'
}

class Entrance {
  readonly #parts: EntranceParts

  constructor(parts: EntranceParts) {
    this.#parts = parts
  }

  enter(request: Entering): ReturnType<Fairness['enter']> {
    const { user, info, query, headers } = request
    if (info.verb !== 'watch' && isLongRunning(info)) return undefined
    const flow = this.#parts.configuration.flowOf(user, info)
    const { set } = flow.level
    headers.push(...flow.headers)
    const work = this.#parts.estimate(info, query, flow)
    flow.meter.estimated(maxSeatsOf(work))
    const distinguisher = set.queuing === undefined ? '' : flow.distinguish(user, info)
    const ticket = set.enter({ flow, distinguisher, work, user, info })
    if (typeof ticket === 'string') return this.#refuse(flow.level)
    if (ticket.isWaiting) return this.#wait(ticket, flow.level, request)
    const place = this.#begin(ticket, flow.level)
    const lane = laneOf(ticket)
    return lane === undefined ? place : turn(lane).then(() => place)
  }

  #begin(ticket: Ticket, { set }: PriorityLevel): Place {
    const { clock, kinds, watches } = this.#parts
    const { info } = ticket
    const kind = requestKindOf(info)
    kinds.add(kind, 'executing', 1, ticket.startedMs)
    const leave = (): void => {
      // A watch that ends while it begins leaves by both doors.
      if (!ticket.isRunning) return
      kinds.add(kind, 'executing', -1, clock.elapsed())
      set.finish(ticket)
    }
    if (info.verb === 'watch') {
      const forget = watches.open(info)
      return { leave, end: () => (leave(), forget()) }
    }
    // On one thread a list is done before the next request is looked at: seats that were free again at once would limit
    // nothing. Who came meanwhile has a turn before the next list of the level begins.
    return { leave: info.verb === 'list' ? () => void setImmediate(leave) : leave }
  }

  async #wait(ticket: Ticket, level: PriorityLevel, { waitMs, signal }: Entering): Promise<Place | Refusal> {
    const { clock, kinds } = this.#parts
    const kind = requestKindOf(ticket.info)
    kinds.add(kind, 'waiting', 1, ticket.arrivedMs)
    const decided = Promise.withResolvers<void>()
    ticket.decided = decided.resolve
    const giveUp = (): void => {
      if (level.set.cancel(ticket)) decided.resolve()
    }
    const timer = clock.after(waitMs, giveUp, { background: true })
    const gone = signal()
    gone.addEventListener('abort', giveUp, { once: true })
    if (gone.aborted) giveUp()
    await decided.promise
    timer.cancel()
    gone.removeEventListener('abort', giveUp)
    kinds.add(kind, 'waiting', -1, clock.elapsed())
    // It began, unless it was taken out of its queue.
    if (!ticket.isRunning) return this.#refuse(level)
    const place = this.#begin(ticket, level)
    const lane = laneOf(ticket)
    if (lane !== undefined) await turn(lane)
    return place
  }

  #refuse({ retryAfter }: PriorityLevel): Refusal {
    retryAfter.dropped(this.#parts.clock.now())
    return { retryAfterSeconds: retryAfter.value }
  }
}
