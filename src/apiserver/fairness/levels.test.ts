import assert from 'node:assert/strict'
import { describe, it } from 'node:test'

import { NO_REQUEST } from '#auth/request-info.ts'
import { createVirtualClock } from '#lib/clock.ts'
import { createServerMeters } from '#model/metrics/families.ts'

import { mandatoryPriorityLevels, suggestedPriorityLevels } from './default-objects.ts'
import type { LevelConfig } from './level.ts'
import { BORROWING_PERIOD_MS, Levels } from './levels.ts'
import { createFlowMeter } from './meters.ts'
import type { Ticket } from './queue.ts'
import { ONE_SEAT } from './work-estimate.ts'

const ALL = [...mandatoryPriorityLevels, ...suggestedPriorityLevels]

interface Bench {
  readonly levels: Levels
  readonly clock: ReturnType<typeof createVirtualClock>
  /** Starts this many requests of the level. */
  readonly load: (level: string, count: number) => Ticket[]
  readonly seats: () => Record<string, number>
}

function setUp(configs: readonly LevelConfig[], seats = 600): Bench {
  const clock = createVirtualClock()
  const meters = createServerMeters()
  const levels = new Levels({ clock, meters, seats })
  levels.configure(configs)
  return {
    levels,
    clock,
    load(level, count) {
      const flow = { name: 's', meter: createFlowMeter(meters, level, 's') }
      const user = { name: 'jane', uid: '', groups: [], extra: {} }
      const arrival = { flow, distinguisher: '', work: ONE_SEAT, user, info: NO_REQUEST }
      const tickets = Array.from({ length: count }, () => levels.get(level)?.set.enter(arrival))
      return tickets.filter((ticket): ticket is Ticket => typeof ticket === 'object')
    },
    seats: () => Object.fromEntries(levels.all().map(({ name, current = 0 }) => [name, current])),
  }
}

function limited(name: string, shares: number, more: object = {}): LevelConfig {
  const limitResponse = { type: 'Reject' }
  return {
    metadata: { name },
    spec: { type: 'Limited', limited: { nominalConcurrencyShares: shares, limitResponse, ...more } },
  }
}

describe('priority levels', () => {
  it('have nominal seats in proportion to their shares, rounded up', () => {
    const { levels } = setUp(ALL)
    assert.deepEqual(
      levels.all().map(({ name, nominal, lowest, highest, maxSeats }) => [name, nominal, lowest, highest, maxSeats]),
      [
        ['catch-all', 13, 13, 613, 0],
        ['exempt', 0, 0, 600, 0],
        ['global-default', 49, 24, 649, 8],
        ['leader-election', 25, 25, 625, 4],
        ['node-high', 98, 73, 698, 15],
        ['system', 74, 50, 674, 12],
        ['workload-high', 98, 49, 698, 15],
        ['workload-low', 245, 24, 845, 37],
      ],
    )
  })

  it('lend unused seats and get them back when needed', async () => {
    const bench = setUp([limited('a', 50, { lendablePercent: 80 }), limited('b', 50, { lendablePercent: 80 })], 100)
    assert.deepEqual(bench.seats(), { a: 50, b: 50 })
    bench.load('a', 50)
    await bench.clock.advance(BORROWING_PERIOD_MS)
    bench.levels.share()
    const { a = 0, b = 0 } = bench.seats()
    assert.ok(a > 70 && b < 30 && a + b === 100, `${a} and ${b}`)
    const hers = bench.load('b', b)
    assert.equal(hers.length, b)
    assert.equal(bench.load('b', 1).length, 0)
    bench.levels.share()
    assert.ok((bench.seats()['b'] ?? 0) >= b)
  })

  it('borrow seats up to their limit', async () => {
    const bench = setUp(
      [limited('a', 50, { borrowingLimitPercent: 10 }), limited('b', 50, { lendablePercent: 100 })],
      100,
    )
    bench.load('a', 60)
    await bench.clock.advance(BORROWING_PERIOD_MS)
    bench.levels.share()
    assert.equal(bench.seats()['a'], 55)
  })

  it('take seats from the other levels if they have type Exempt', async () => {
    const bench = setUp(ALL)
    bench.load('exempt', 500)
    await bench.clock.advance(BORROWING_PERIOD_MS)
    bench.levels.share()
    assert.deepEqual([bench.seats()['exempt'], bench.seats()['workload-low']], [500, 24])
  })

  it('keep the seats of a demand peak for some minutes', async () => {
    const bench = setUp([limited('a', 50, { lendablePercent: 100 }), limited('b', 50, { lendablePercent: 100 })], 100)
    const hers = bench.load('a', 50)
    await bench.clock.advance(BORROWING_PERIOD_MS)
    bench.levels.share()
    for (const ticket of hers) bench.levels.get('a')?.set.finish(ticket)
    await bench.clock.advance(BORROWING_PERIOD_MS)
    bench.levels.share()
    assert.ok((bench.levels.get('a')?.demand.stats.smoothed ?? 0) > 45)
    for (let period = 0; period < 60; period++) {
      await bench.clock.advance(BORROWING_PERIOD_MS)
      bench.levels.share()
    }
    const { smoothed = 0 } = bench.levels.get('a')?.demand.stats ?? {}
    assert.ok(smoothed > 5 && smoothed < 15, `a quarter after ten minutes: ${smoothed}`)
  })

  it('exist after their deletion until their last request ends', () => {
    const bench = setUp([limited('a', 50), limited('b', 50)], 100)
    const [his] = bench.load('b', 1)
    bench.levels.configure([limited('a', 50)])
    assert.deepEqual([bench.levels.get('b')?.isQuiescing, bench.seats()['a']], [true, 50])
    bench.levels.get('b')?.set.finish(his as Ticket)
    bench.levels.share()
    assert.deepEqual(bench.seats(), { a: 100 })
    bench.levels.configure([limited('a', 50), limited('b', 150)])
    assert.deepEqual(bench.seats(), { a: 25, b: 75 })
  })
})
