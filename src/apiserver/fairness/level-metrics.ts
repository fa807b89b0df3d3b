/** Metrics of priority levels, computed when they are read. */
import type { Clock } from '#lib/clock.ts'
import type { ServerMeters } from '#model/metrics/families.ts'

import type { PriorityLevel } from './level.ts'
import type { Levels } from './levels.ts'
import type { KindMeter } from './meters.ts'

const LEVEL_GAUGES = {
  apiserver_flowcontrol_nominal_limit_seats: ({ nominal }) => nominal,
  apiserver_flowcontrol_lower_limit_seats: ({ lowest }) => lowest,
  apiserver_flowcontrol_upper_limit_seats: ({ highest }) => highest,
  apiserver_flowcontrol_current_limit_seats: ({ current = 0 }) => current,
  apiserver_flowcontrol_target_seats: ({ target }) => target,
  apiserver_flowcontrol_demand_seats_average: ({ demand }) => demand.stats.average,
  apiserver_flowcontrol_demand_seats_high_watermark: ({ demand }) => demand.stats.highWatermark,
  apiserver_flowcontrol_demand_seats_smoothed: ({ demand }) => demand.stats.smoothed,
  apiserver_flowcontrol_demand_seats_stdev: ({ demand }) => demand.stats.deviation,
  apiserver_flowcontrol_current_r: ({ set }) => set.currentR,
  apiserver_flowcontrol_dispatch_r: ({ set }) => set.bounds?.dispatchR,
  apiserver_flowcontrol_latest_s: ({ set }) => set.bounds?.latestS,
} as const satisfies Readonly<Record<string, (level: PriorityLevel) => number | undefined>>

const BOUND_GAUGES = {
  apiserver_flowcontrol_next_s_bounds: 'nextS',
  apiserver_flowcontrol_next_discounted_s_bounds: 'nextDiscountedS',
} as const

export function registerLevelMetrics(
  meters: ServerMeters,
  clock: Clock,
  { levels, kinds }: { readonly levels: () => Levels; readonly kinds: KindMeter },
): void {
  meters.registry.beforeRender(() => {
    const nowMs = clock.elapsed()
    for (const { meter } of levels().all()) meter.advance(nowMs)
    kinds.advance(nowMs)
  })
  for (const name of namesOf(LEVEL_GAUGES)) {
    meters.collect(name, (emit) => {
      for (const level of levels().all()) {
        const value = LEVEL_GAUGES[name](level)
        if (value !== undefined) emit(value, level.name)
      }
    })
  }
  for (const name of namesOf(BOUND_GAUGES)) {
    meters.collect(name, (emit) => {
      for (const { name: level, set } of levels().all()) {
        if (set.bounds === undefined) continue
        const [low, high] = set.bounds[BOUND_GAUGES[name]]
        emit(low, level, 'min')
        emit(high, level, 'max')
      }
    })
  }
  meters.collect('apiserver_flowcontrol_seat_fair_frac', (emit) => emit(levels().fairFraction))
}

function namesOf<T extends object>(table: T): (keyof T)[] {
  return Object.keys(table) as (keyof T)[]
}
