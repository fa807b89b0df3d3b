/** Time slicing: long work runs in slices of a few milliseconds and yields to the event loop in between. */

import { type Clock, realClock } from './clock.ts'
import { Fifo } from './collections/fifo.ts'

/** So many items take a few milliseconds, even when they are encoded as YAML. */
const SLICE_ITEMS = 25
/** The duration of a slice where the cost of an item is unknown. */
export const SLICE_MS = 5
/** The number of items between two readings of the clock, because reading it costs as well. */
const CLOCK_EVERY_ITEMS = 16

/** Maps in order. Other work runs between slices, so `items` must not change meanwhile. */
export async function mapInSlices<T, R>(items: readonly T[], make: (item: T, at: number) => R): Promise<R[]> {
  const made: R[] = []
  for (const item of items) {
    if (made.length > 0 && made.length % SLICE_ITEMS === 0) await yieldToEventLoop()
    made.push(make(item, made.length))
  }
  return made
}

/** Calls `visit` with each item until it returns false; resolves to the item for which it did. */
export async function walkInSlices<T>(
  slices: Iterable<readonly T[]> | AsyncIterable<readonly T[]>,
  clock: Clock,
  visit: (item: T) => boolean,
): Promise<T | undefined> {
  let begunMs = clock.elapsed()
  // A short page that was interrupted for longer than a slice must not queue behind long lists.
  let lane: 'short' | 'long' = 'short'
  for await (const items of slices) {
    for (const [at, item] of items.entries()) {
      if (!visit(item)) return item
      if (at % CLOCK_EVERY_ITEMS !== 0 || clock.elapsed() - begunMs < SLICE_MS) continue
      await yieldToEventLoop(lane)
      lane = 'long'
      begunMs = clock.elapsed()
    }
  }
  return undefined
}

/** Work that may pause at each yield. `runInSlices` runs it in slices, `runAtOnce` without a pause; `yield*` nests it. */
export type Steps<T> = Generator<void, T, void>

export async function runInSlices<T>(steps: Steps<T>, clock: Pick<Clock, 'elapsed'> = realClock): Promise<T> {
  let begunMs = clock.elapsed()
  for (;;) {
    const { done, value } = steps.next()
    if (done === true) return value
    if (clock.elapsed() - begunMs < SLICE_MS) continue
    await yieldToEventLoop()
    begunMs = clock.elapsed()
  }
}

/** Steps that complete at once with a value. */
export function completedSteps<T>(value: T): () => Steps<T> {
  // oxlint-disable-next-line require-yield -- there is nothing to wait for
  return function* () {
    return value
  }
}

export function runAtOnce<T>(steps: Steps<T>): T {
  for (;;) {
    const { done, value } = steps.next()
    if (done === true) return value
  }
}

/** `flatMap` for a callback that works in steps. */
export function* flatMapSteps<T, R>(
  items: Iterable<T>,
  make: (item: T, at: number) => Steps<readonly R[]>,
): Steps<R[]> {
  const all: R[] = []
  let at = 0
  for (const item of items) for (const one of yield* make(item, at++)) all.push(one)
  return all
}

/** The number of small steps for each yield, because a yield passes through all nested generators. */
const STEPS_PER_YIELD = 64
let stepCount = 0

/** True at every 64th call. Work of many very small steps yields only when this returns true. */
export function shouldYield(): boolean {
  return ++stepCount % STEPS_PER_YIELD === 0
}

/** The waiting tasks. Each turn of the event loop resumes one of each lane. */
const lanes = { short: new Fifo<() => void>(), long: new Fifo<() => void>() }
let isScheduled = false

/**
 * Resolves after all other pending work and all earlier waiters have run. One turn of the event loop resumes one waiter of
 * each lane, or two of one lane, however many wait.
 */
export function yieldToEventLoop(lane: 'short' | 'long' = 'long'): Promise<void> {
  return new Promise((resolve) => {
    lanes[lane].push(resolve)
    scheduleNext()
  })
}

function scheduleNext(): void {
  const { short, long } = lanes
  if (isScheduled || short.size + long.size === 0) return
  isScheduled = true
  setImmediate(() => {
    isScheduled = false
    const first = short.shift() ?? long.shift()
    const second = long.shift() ?? short.shift()
    first?.()
    second?.()
    scheduleNext()
  })
}
