import assert from 'node:assert/strict'
import { describe, it } from 'node:test'

import { createVirtualClock } from './clock.ts'
import {
  runAtOnce,
  flatMapSteps,
  runInSlices,
  shouldYield,
  mapInSlices,
  type Steps,
  yieldToEventLoop,
  walkInSlices,
} from './time-slicing.ts'

const MANY = Array.from({ length: 1000 }, (_, at) => at)
const SLICES = [MANY.slice(0, 400), MANY.slice(400)]

/** Counts the turns of other work until `work` is done. */
async function turnsDuring(work: Promise<unknown>): Promise<number> {
  const state = { turns: 0, isDone: false }
  void work.then(() => (state.isDone = true))
  while (!state.isDone) {
    await new Promise(setImmediate)
    state.turns++
  }
  return state.turns
}

describe('mapInSlices and walkInSlices', () => {
  it('return the result of an ordinary map, and let other work run', async () => {
    const work = mapInSlices(MANY, (at) => at * 2)
    assert.ok((await turnsDuring(work)) > 5)
    assert.deepEqual(
      await work,
      MANY.map((at) => at * 2),
    )
  })

  it('resume a few waiting tasks per event loop turn, in order', async () => {
    const done: number[] = []
    const all = Promise.all(Array.from({ length: 10 }, (_, at) => yieldToEventLoop().then(() => done.push(at))))
    const counts: number[] = []
    while (done.length < 10) {
      await new Promise(setImmediate)
      counts.push(done.length)
    }
    await all
    assert.deepEqual(done, [0, 1, 2, 3, 4, 5, 6, 7, 8, 9])
    assert.ok(
      counts.every((count, at) => count - (counts[at - 1] ?? 0) <= 2),
      counts.join(),
    )
  })

  it('prefer short tasks to long ones without starving long ones', async () => {
    const done: string[] = []
    const lanes = ['long', 'long', 'long', 'short', 'short', 'short'] as const
    await Promise.all(lanes.map((lane, at) => yieldToEventLoop(lane).then(() => done.push(`${lane} ${at}`))))
    assert.deepEqual(done, ['short 3', 'long 0', 'short 4', 'long 1', 'short 5', 'long 2'])
  })

  it('return the item for which the callback returned false', async () => {
    const seen: number[] = []
    const clock = createVirtualClock()
    assert.equal(await walkInSlices(SLICES, clock, (at) => seen.push(at) < 500), 499)
    assert.deepEqual(seen, MANY.slice(0, 500))
    assert.equal(await walkInSlices(SLICES, clock, () => true), undefined)
    assert.equal(await walkInSlices([], clock, () => false), undefined)
  })

  it('yield during a long walk', async () => {
    assert.ok((await turnsDuring(walkInSlices(SLICES, hastyClock(), () => true))) > 5)
  })
})

/** A clock that advances by a millisecond at each reading. */
function hastyClock(): ReturnType<typeof createVirtualClock> {
  let nowMs = 0
  return { ...createVirtualClock(), elapsed: () => nowMs++ }
}

describe('runInSlices() of long work', () => {
  function* doubled(of: readonly number[]): Steps<number[]> {
    return yield* flatMapSteps(of, function* (one, at): Steps<number[]> {
      yield
      return [one, at]
    })
  }
  const twice = MANY.flatMap((at) => [at, at])

  it('returns the result of runAtOnce, and lets other work run', async () => {
    assert.deepEqual(runAtOnce(doubled(MANY)), twice)
    const work = runInSlices(doubled(MANY), hastyClock())
    assert.ok((await turnsDuring(work)) > 100)
    assert.deepEqual(await work, twice)
  })

  it('does not yield if no time has passed', async () => {
    const work = runInSlices(doubled(MANY), createVirtualClock())
    assert.equal(await turnsDuring(work), 1)
  })

  it('rejects with the error of a step', async () => {
    function* failing(): Steps<void> {
      yield
      throw new Error('no further')
    }
    await assert.rejects(runInSlices(failing(), hastyClock()), /no further/)
    assert.throws(() => runAtOnce(failing()), /no further/)
  })

  it('yields after many small steps', () => {
    const due = MANY.filter(shouldYield).length
    assert.ok(due === 15 || due === 16, `${due} of ${MANY.length}`)
  })
})
