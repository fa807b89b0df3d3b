/**
 * All priority levels of a server, and the distribution of seats among them. Every ten seconds, levels with unused
 * seats lend some of them to busy levels.
 */
import type { Clock } from '#lib/clock.ts'
import type { ServerMeters } from '#model/metrics/families.ts'

import { allocate } from './allocation.ts'
import { type LevelConfig, PriorityLevel } from './level.ts'

/** Upstream's period. */
export const BORROWING_PERIOD_MS = 10_000

export interface LevelsParts {
  readonly clock: Clock
  readonly meters: ServerMeters
  /** The seats of the server. */
  readonly seats: number
}

export class Levels {
  readonly #parts: LevelsParts
  readonly #levels = new Map<string, PriorityLevel>()
  fairFraction = 0

  constructor(parts: LevelsParts) {
    this.#parts = parts
  }

  all(): readonly PriorityLevel[] {
    return [...this.#levels.values()].sort((a, b) => (a.name < b.name ? -1 : 1))
  }

  get(name: string): PriorityLevel | undefined {
    return this.#levels.get(name)
  }

  /** Sets the levels. A level that is no longer configured stays until its last request ends. */
  configure(configs: readonly LevelConfig[]): void {
    const names = new Set(configs.map(({ metadata }) => metadata.name ?? ''))
    for (const level of this.#levels.values()) level.isQuiescing = !names.has(level.name)
    for (const config of configs) {
      const name = config.metadata.name ?? ''
      const level = this.#levels.get(name)
      if (level === undefined) this.#levels.set(name, new PriorityLevel(config, this.#parts))
      else level.config = config
    }
    this.#dropIdle()
    const shares = sumOf(this.#levels.values(), (level) => level.shares)
    for (const level of this.#levels.values()) level.entitle(this.#parts.seats, shares)
    this.share()
  }

  /** Computes the seats of each level from its demand since the last time. */
  share(): void {
    if (this.#dropIdle()) return this.configure(this.#configs())
    const nowMs = this.#parts.clock.elapsed()
    const levels = [...this.#levels.values()]
    for (const { demand } of levels) demand.endPeriod(nowMs)
    const total = sumOf(levels, ({ nominal }) => nominal)
    const limited = levels.filter(({ isExempt }) => !isExempt)
    const exempt = levels.filter(({ isExempt }) => isExempt)
    const left = total - sumOf(exempt, ({ floor }) => floor)
    for (const level of exempt) this.#grant(level, level.floor)
    for (const level of limited) level.target = Math.max(level.floor, level.demand.stats.smoothed)
    const granted = this.#divide(limited, { total, left })
    for (const [at, level] of limited.entries()) this.#grant(level, granted[at] ?? level.lowest)
  }

  /** Exempt levels took the rest: no level gets more than its minimum, and perhaps less. */
  #divide(levels: readonly PriorityLevel[], { total, left }: Record<'total' | 'left', number>): readonly number[] {
    const [lowest, needed] = [sumOf(levels, (level) => level.lowest), sumOf(levels, ({ floor }) => floor)]
    this.fairFraction = 0
    if (left <= lowest) return levels.map((level) => level.lowest)
    if (left <= needed) {
      const part = (left - lowest) / (needed - lowest)
      return levels.map((level) => level.lowest + Math.round((level.floor - level.lowest) * part))
    }
    const claims = levels.map(({ target, floor, highest }) => ({ target, lowest: floor, highest }))
    const { seats, fairFraction } = allocate(total, claims)
    this.fairFraction = fairFraction
    return seats.map((count) => Math.round(count))
  }

  #grant(level: PriorityLevel, seats: number): void {
    level.grant(seats, Math.max(1, Math.round(this.#parts.seats / 10)))
  }

  #dropIdle(): boolean {
    const idle = [...this.#levels.values()].filter(({ isQuiescing, set }) => isQuiescing && set.isIdle)
    for (const { name } of idle) this.#levels.delete(name)
    return idle.length > 0
  }

  #configs(): LevelConfig[] {
    return [...this.#levels.values()].filter(({ isQuiescing }) => !isQuiescing).map(({ config }) => config)
  }
}

export function sumOf<T>(things: Iterable<T>, measure: (thing: T) => number): number {
  let sum = 0
  for (const thing of things) sum += measure(thing)
  return sum
}
