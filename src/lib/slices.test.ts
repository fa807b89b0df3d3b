import assert from 'node:assert/strict'
import { describe, it } from 'node:test'

import { createVirtualClock } from './clock.ts'
import { atOnce, flatMapSteps, inSlices, isDue, mapInSlices, type Steps, turn, walkInSlices } from './slices.ts'

const MANY = Array.from({ length: 1000 }, (_, at) => at)
const SLICES = [MANY.slice(0, 400), MANY.slice(400)]

/** Counts how often others had their turn until `work` was done. */
async function turnsDuring(work: Promise<unknown>): Promise<number> {
  const state = { turns: 0, isDone: false }
  void work.then(() => (state.isDone = true))
  while (!state.isDone) {
    await new Promise(setImmediate)
    state.turns++
  }
  return state.turns
}

describe('work in slices', () => {
  it('gives what it would give in one piece, and others their turn', async () => {
    const work = mapInSlices(MANY, (at) => at * 2)
    assert.ok((await turnsDuring(work)) > 5)
    assert.deepEqual(
      await work,
      MANY.map((at) => at * 2),
    )
  })

  it('is done by a few at once, in order, however many there are', async () => {
    const done: number[] = []
    const all = Promise.all(Array.from({ length: 10 }, (_, at) => turn().then(() => done.push(at))))
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

  it('lets short work past long work, and long work not wait for ever', async () => {
    const done: string[] = []
    const lanes = ['long', 'long', 'long', 'short', 'short', 'short'] as const
    await Promise.all(lanes.map((lane, at) => turn(lane).then(() => done.push(`${lane} ${at}`))))
    assert.deepEqual(done, ['short 3', 'long 0', 'short 4', 'long 1', 'short 5', 'long 2'])
  })

  it('walks until it has seen enough, and says where that was', async () => {
    const seen: number[] = []
    const clock = createVirtualClock()
    assert.equal(await walkInSlices(SLICES, clock, (at) => seen.push(at) < 500), 499)
    assert.deepEqual(seen, MANY.slice(0, 500))
    assert.equal(await walkInSlices(SLICES, clock, () => true), undefined)
    assert.equal(await walkInSlices([], clock, () => false), undefined)
  })

  it('walks on only when others had their turn, if it took long', async () => {
    assert.ok((await turnsDuring(walkInSlices(SLICES, hastyClock(), () => true))) > 5)
  })
})

/** A millisecond goes by whenever somebody looks. */
function hastyClock(): ReturnType<typeof createVirtualClock> {
  let nowMs = 0
  return { ...createVirtualClock(), elapsed: () => nowMs++ }
}

describe('work in steps', () => {
  function* doubled(of: readonly number[]): Steps<number[]> {
    return yield* flatMapSteps(of, function* (one, at): Steps<number[]> {
      yield
      return [one, at]
    })
  }
  const twice = MANY.flatMap((at) => [at, at])

  it('comes to the same at once and in slices, in which others have their turn', async () => {
    assert.deepEqual(atOnce(doubled(MANY)), twice)
    const work = inSlices(doubled(MANY), hastyClock())
    assert.ok((await turnsDuring(work)) > 100)
    assert.deepEqual(await work, twice)
  })

  it('is done in one go while no time passes', async () => {
    const work = inSlices(doubled(MANY), createVirtualClock())
    assert.equal(await turnsDuring(work), 1)
  })

  it('fails where a step does', async () => {
    function* failing(): Steps<void> {
      yield
      throw new Error('no further')
    }
    await assert.rejects(inSlices(failing(), hastyClock()), /no further/)
    assert.throws(() => atOnce(failing()), /no further/)
  })

  it('yields at one of many small steps', () => {
    const due = MANY.filter(isDue).length
    assert.ok(due === 15 || due === 16, `${due} of ${MANY.length}`)
  })
})
