/** The run-time state of one priority level: its seats, queues and demand. */
import type {
  ExemptPriorityLevelConfiguration,
  LimitedPriorityLevelConfiguration,
  PriorityLevelConfiguration,
} from '#apis/flowcontrol/v1.ts'
import type { Clock } from '#lib/clock.ts'
import type { ServerMeters } from '#model/metrics/families.ts'

import { LevelMeter } from './meters.ts'
import { type LimitMode, QueueSet } from './queue-set.ts'
import { RetryAfter } from './retry-after.ts'
import { SeatDemand } from './seat-demand.ts'

/** A stored configuration, or a mandatory one that is missing. */
export type LevelConfig = Pick<PriorityLevelConfiguration, 'metadata' | 'spec'>

/** The part of a level's nominal seats that one request may take. */
const MAX_WIDTH_FRACTION = 0.15

export class PriorityLevel {
  readonly name: string
  readonly demand: SeatDemand
  readonly meter: LevelMeter
  readonly set: QueueSet
  readonly retryAfter: RetryAfter = new RetryAfter()
  config: LevelConfig
  /** Its configuration was deleted; it stays until its last request ends. */
  isQuiescing = false
  /** Its nominal seats, minimum (not lendable) and maximum (with borrowing). */
  nominal = 0
  lowest = 0
  highest = 0
  /** Its current seats; undefined until first computed. */
  current: number | undefined
  /** The target of seats if there were enough. */
  target = 0

  constructor(config: LevelConfig, { clock, meters }: { readonly clock: Clock; readonly meters: ServerMeters }) {
    const nowMs = clock.elapsed()
    this.config = config
    this.name = config.metadata.name ?? ''
    this.demand = new SeatDemand(nowMs)
    this.meter = new LevelMeter(meters, this.name, this.demand, nowMs)
    this.set = new QueueSet(clock, this.meter, this.#mode)
  }

  get isExempt(): boolean {
    return this.config.spec.type === 'Exempt'
  }

  get shares(): number {
    return this.#sharing.nominalConcurrencyShares ?? 0
  }

  /** The capacity of all its queues. */
  get queueCapacity(): number {
    const { queuing } = this.config.spec.limited?.limitResponse ?? {}
    return queuing === undefined ? 0 : queuing.queues * queuing.queueLengthLimit
  }

  /** The maximum number of seats of one request; 0: unspecified. */
  get maxSeats(): number {
    const { queuing } = this.config.spec.limited?.limitResponse ?? {}
    if (queuing === undefined) return 0
    const { nominal } = this
    return Math.max(1, Math.min(Math.ceil(nominal * MAX_WIDTH_FRACTION), Math.floor(nominal / queuing.handSize)))
  }

  /** Its part of `seats`, which all levels with `shares` together have. */
  entitle(seats: number, shares: number): void {
    const { lendablePercent = 0 } = this.#sharing
    const borrowing = this.config.spec.limited?.borrowingLimitPercent
    this.nominal = shares === 0 ? 0 : Math.ceil((seats * this.shares) / shares)
    this.lowest = this.nominal - Math.round((this.nominal * lendablePercent) / 100)
    this.highest = this.nominal + (borrowing === undefined ? seats : Math.round((this.nominal * borrowing) / 100))
    this.current ??= this.nominal - Math.floor((this.nominal - this.lowest) / 2)
  }

  /** The minimum of seats now: an exempt level has what it uses. */
  get floor(): number {
    const { highWatermark } = this.demand.stats
    return Math.max(this.lowest, this.isExempt ? highWatermark : Math.min(this.nominal, highWatermark))
  }

  /** Sets the current number of seats. `usual` is the reference for ratios if that is 0. */
  grant(seats: number, usual: number): void {
    this.current = seats
    this.meter.capacity = { queued: Math.max(1, this.queueCapacity), seats: seats > 0 ? seats : usual }
    this.set.configure(this.#mode, seats)
  }

  get #sharing(): ExemptPriorityLevelConfiguration | LimitedPriorityLevelConfiguration {
    return this.config.spec.limited ?? this.config.spec.exempt ?? {}
  }

  get #mode(): LimitMode {
    const { type, limited } = this.config.spec
    return type === 'Exempt' ? 'exempt' : (limited?.limitResponse.queuing ?? 'reject')
  }
}
