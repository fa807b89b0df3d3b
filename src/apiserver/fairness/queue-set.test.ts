import assert from 'node:assert/strict'
import { describe, it } from 'node:test'

import { NO_REQUEST } from '#auth/request-info.ts'
import { createVirtualClock } from '#lib/clock.ts'

import { type LimitMode, QueueSet } from './queue-set.ts'
import type { FlowObserver, Ticket } from './queue.ts'
import { ONE_SEAT, type WorkEstimate } from './work-estimate.ts'

const nothing = (): void => undefined
const silent: FlowObserver = {
  queued: nothing,
  unqueued: nothing,
  started: nothing,
  finished: nothing,
  seatsGiven: nothing,
  rejected: nothing,
  notAccommodated: nothing,
}
const user = { name: 'jane', uid: '', groups: [], extra: {} }
const QUEUES = { queues: 64, handSize: 6, queueLengthLimit: 50 }

interface Bench {
  readonly set: QueueSet
  readonly clock: ReturnType<typeof createVirtualClock>
  readonly enter: (distinguisher: string, work?: WorkEstimate) => Ticket | string
}

function setUp(mode: LimitMode, limit: number): Bench {
  const clock = createVirtualClock()
  const set = new QueueSet(clock, { noted: nothing }, mode)
  set.configure(mode, limit)
  const flow = { name: 'flow', meter: silent }
  const enter: Bench['enter'] = (distinguisher, work = ONE_SEAT) =>
    set.enter({ flow, distinguisher, work, user, info: NO_REQUEST })
  return { set, clock, enter }
}

const wide = (initialSeats: number): WorkEstimate => ({ initialSeats, finalSeats: 0, additionalMs: 0 })
const isWaiting = (ticket: Ticket | string): boolean => typeof ticket !== 'string' && ticket.isWaiting

/** Finishes running requests after ten milliseconds. */
async function serve({ set, clock }: Bench): Promise<string[]> {
  await clock.advance(10)
  const done = [...set.running]
  for (const ticket of done) set.finish(ticket)
  return done.map(({ distinguisher }) => distinguisher)
}

describe('priority level without queues', () => {
  it('rejects a request without a free seat, and admits again when one is free', () => {
    const { set, enter } = setUp('reject', 2)
    const first = enter('a') as Ticket
    assert.equal(isWaiting(enter('a')), false)
    assert.equal(enter('b'), 'concurrency-limit')
    set.finish(first)
    assert.equal(isWaiting(enter('b')), false)
    assert.deepEqual([set.executing, set.dispatched, set.rejected], [2, 3, 1])
  })

  it('admits a request that needs more seats than the limit if it runs alone, even at limit 0', () => {
    const { enter } = setUp('reject', 0)
    assert.equal(isWaiting(enter('a')), false)
    assert.equal(enter('a'), 'concurrency-limit')
  })

  it('keeps the seats of a write occupied while watchers are notified', async () => {
    const { set, clock, enter } = setUp('reject', 3)
    const write = enter('a', { initialSeats: 1, finalSeats: 3, additionalMs: 5 }) as Ticket
    set.finish(write)
    assert.deepEqual([set.executing, set.seatsInUse, enter('b')], [0, 3, 'concurrency-limit'])
    await clock.advance(5)
    assert.deepEqual([set.seatsInUse, isWaiting(enter('b'))], [0, false])
  })

  it('does not limit exempt requests', () => {
    const { set, enter } = setUp('exempt', 0)
    for (let count = 0; count < 100; count++) assert.equal(isWaiting(enter('a')), false)
    assert.equal(set.seatsInUse, 100)
  })
})

describe('priority level with queues', () => {
  it('queues requests without a free seat in order of arrival', () => {
    const { set, enter } = setUp({ ...QUEUES, queues: 1, handSize: 1 }, 1)
    const [first, second, third] = [enter('a'), enter('a'), enter('a')] as Ticket[]
    assert.deepEqual(
      [first, second, third].map((one) => isWaiting(one as Ticket)),
      [false, true, true],
    )
    const began: string[] = []
    for (const [name, ticket] of Object.entries({ second, third })) {
      ;(ticket as Ticket).decided = () => void began.push(name)
    }
    set.finish(first as Ticket)
    assert.deepEqual(began, ['second'])
    set.finish(second as Ticket)
    assert.deepEqual([began, set.waiting, set.executing], [['second', 'third'], 0, 1])
  })

  it('rejects a request of a flow whose queues are full', () => {
    const { set, enter } = setUp({ queues: 64, handSize: 1, queueLengthLimit: 2 }, 1)
    assert.deepEqual(
      ['a', 'a', 'a', 'a'].map((who) => enter(who)).map((one) => (typeof one === 'string' ? one : one.isWaiting)),
      [false, true, true, 'queue-full'],
    )
    assert.equal(isWaiting(enter('b')), true)
    assert.deepEqual([set.waiting, set.rejected], [3, 1])
  })

  it('admits a request of a new flow before the queued requests of a busy flow', async () => {
    const bench = setUp({ ...QUEUES, handSize: 1, queueLengthLimit: 10_000 }, 2)
    for (let count = 0; count < 1000; count++) bench.enter('flood')
    for (let count = 0; count < 20; count++) await serve(bench)
    const newcomer = bench.enter('newcomer') as Ticket
    assert.equal(newcomer.isWaiting, true)
    await serve(bench)
    assert.equal(newcomer.isWaiting, false)
  })

  it('gives two flows equal seat-seconds, regardless of the seats per request', async () => {
    const bench = setUp({ ...QUEUES, handSize: 1, queueLengthLimit: 10_000 }, 4)
    for (let count = 0; count < 400; count++) {
      bench.enter('narrow')
      bench.enter('wide', wide(4))
    }
    const served: string[] = []
    for (let step = 0; step < 200; step++) served.push(...(await serve(bench)))
    const narrow = served.filter((name) => name === 'narrow').length
    const ratio = narrow / (4 * (served.length - narrow))
    assert.ok(ratio > 0.8 && ratio < 1.25, String(ratio))
  })

  it('does not accumulate credit for idle flows', async () => {
    const bench = setUp({ ...QUEUES, handSize: 1, queueLengthLimit: 10_000 }, 2)
    for (let count = 0; count < 1000; count++) bench.enter('busy')
    for (let count = 0; count < 100; count++) await serve(bench)
    for (let count = 0; count < 100; count++) bench.enter('late')
    const served: string[] = []
    for (let count = 0; count < 20; count++) served.push(...(await serve(bench)))
    const busy = served.filter((name) => name === 'busy').length
    assert.ok(busy >= 16 && busy <= 24, `${busy} of ${served.length}`)
  })

  it('admits small requests to seats that are too few for a waiting large request, without delaying it', async () => {
    const { set, clock, enter } = setUp({ ...QUEUES, handSize: 1, queueLengthLimit: 100 }, 50)
    const lists = Array.from({ length: 20 }, () => enter('lists', wide(8)) as Ticket)
    assert.deepEqual([set.executing, set.seatsInUse], [5, 40], 'five are left, and a wide one takes none of them')
    await clock.advance(1000)
    const others = Array.from({ length: 8 }, (_, at) => enter(`other-${at}`) as Ticket)
    assert.deepEqual([others.filter((one) => !one.isWaiting).length, set.seatsInUse], [5, 45])
    set.finish(others[0] as Ticket)
    assert.equal(others.filter((one) => !one.isWaiting).length, 6)
    set.finish(lists[0] as Ticket)
    assert.equal(lists.filter((one) => !one.isWaiting).length, 6, 'and the wide one comes when it would have come')
  })

  it('removes aborted requests and admits the rest', () => {
    const { set, enter } = setUp({ ...QUEUES, queues: 1, handSize: 1 }, 1)
    const [first, second, third] = [enter('a'), enter('a'), enter('a')] as [Ticket, Ticket, Ticket]
    assert.equal(set.cancel(second), true)
    assert.equal(set.cancel(first), false, 'it is running')
    set.finish(first)
    assert.deepEqual([third.isWaiting, set.waiting, set.cancelled, set.rejected], [false, 0, 1, 1])
  })

  it('keeps queued requests after a configuration change', () => {
    const { set, enter } = setUp({ ...QUEUES, handSize: 1 }, 1)
    const tickets = ['a', 'b', 'c', 'd'].map((who) => enter(who) as Ticket)
    set.configure({ ...QUEUES, queues: 1, handSize: 1 }, 2)
    assert.equal(tickets.filter((ticket) => ticket.isWaiting).length, 2)
    set.configure('reject', 4)
    assert.equal(set.waiting, 0)
    for (const ticket of tickets) set.finish(ticket)
    assert.deepEqual([set.queues.size, set.seatsInUse, set.isIdle], [0, 0, true])
  })

  it('limits the seats for the watch events of a write to the seats of the level', () => {
    const { enter } = setUp(QUEUES, 4)
    const write = enter('a', { initialSeats: 1, finalSeats: 8, additionalMs: 5 }) as Ticket
    assert.deepEqual(write.work, { initialSeats: 1, finalSeats: 4, additionalMs: 10 })
  })
})
