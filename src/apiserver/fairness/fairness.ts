/**
 * API priority and fairness: limits concurrent requests. A flow schema assigns each request to a priority level with a
 * number of seats. A request without a free seat waits in a fair queue or is rejected.
 */
import { isLongRunning, type Load, requestKindOf } from '#component/requests/inflight.ts'
import type { Refusal, Seat, SeatAllocation, SeatRequest } from '#component/requests/request-filters.ts'
import { type Clock, every } from '#lib/clock.ts'
import { yieldToEventLoop } from '#lib/time-slicing.ts'

import type { Registry } from '../registry/registry.ts'
import { type Configuration, type ConfigurationParts, followConfiguration } from './configuration.ts'
import { registerLevelMetrics } from './level-metrics.ts'
import type { PriorityLevel } from './level.ts'
import { BORROWING_PERIOD_MS } from './levels.ts'
import { KindMeter } from './meters.ts'
import { NARROW_SEATS, type Ticket } from './queue.ts'
import { createWatchCounts, type WatchCounts } from './watch-counts.ts'
import { createEstimate, type Estimate, maxSeatsOf } from './work-estimate.ts'

export interface Fairness extends Load, SeatAllocation {
  /** For diagnostics, by name. */
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
  const allocator = new SeatAllocator({ clock, kinds, configuration, estimate, watches })
  return {
    acquire: (request) => allocator.acquire(request),
    running: (kind) => kinds.count(kind, 'executing'),
    waiting: (kind) => kinds.count(kind, 'waiting'),
    levels: () => configuration.levels().all(),
    close() {
      timer.cancel()
      configuration.close()
    },
  }
}

interface SeatAllocatorParts {
  readonly clock: Clock
  readonly kinds: KindMeter
  readonly configuration: Configuration
  readonly estimate: Estimate
  readonly watches: WatchCounts
}

/**
 * On one thread a list blocks everything, so larger lists start in a lane of the event loop that resumes few at a time.
 */
function laneOf({ info, work }: Ticket): 'short' | 'long' | undefined {
  if (info.verb !== 'list' || work.initialSeats === 1) return undefined
  return work.initialSeats > NARROW_SEATS ? 'long' : 'short'
}

class SeatAllocator {
  readonly #parts: SeatAllocatorParts

  constructor(parts: SeatAllocatorParts) {
    this.#parts = parts
  }

  acquire(request: SeatRequest): ReturnType<Fairness['acquire']> {
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
    const seat = this.#begin(ticket, flow.level)
    const lane = laneOf(ticket)
    return lane === undefined ? seat : yieldToEventLoop(lane).then(() => seat)
  }

  #begin(ticket: Ticket, { set }: PriorityLevel): Seat {
    const { clock, kinds, watches } = this.#parts
    const { info } = ticket
    const kind = requestKindOf(info)
    kinds.add(kind, 'executing', 1, ticket.startedMs)
    const release = (): void => {
      // A watch that ends during its initialization is released by both calls.
      if (!ticket.isRunning) return
      kinds.add(kind, 'executing', -1, clock.elapsed())
      set.finish(ticket)
    }
    if (info.verb === 'watch') {
      const forget = watches.open(info)
      return { release, end: () => (release(), forget()) }
    }
    // On one thread a list completes before the next request is read: seats that are free again at once would limit
    // nothing. They are freed after a turn of the event loop, so that waiting requests run before the level's next
    // list.
    return { release: info.verb === 'list' ? () => void setImmediate(release) : release }
  }

  async #wait(ticket: Ticket, level: PriorityLevel, { waitMs, signal }: SeatRequest): Promise<Seat | Refusal> {
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
    // The request has started, unless it was removed from its queue.
    if (!ticket.isRunning) return this.#refuse(level)
    const seat = this.#begin(ticket, level)
    const lane = laneOf(ticket)
    if (lane !== undefined) await yieldToEventLoop(lane)
    return seat
  }

  #refuse({ retryAfter }: PriorityLevel): Refusal {
    retryAfter.dropped(this.#parts.clock.now())
    return { retryAfterSeconds: retryAfter.value }
  }
}
