/** Work on many things a few at a time: whoever lists fifty thousand objects must not hold up everybody else. */

import { type Clock, realClock } from './clock.ts'
import { Fifo } from './fifo.ts'

/** A few milliseconds' work, whatever it is, even as YAML. */
const SLICE_ITEMS = 25
/** How long a slice may take of which nobody knows what one item costs. */
export const SLICE_MS = 5
/** How often that is looked at: looking costs as well. */
const LOOK_EVERY_ITEMS = 16

/** In order. Others have their turn between slices, so what `items` is made of must not change meanwhile. */
export async function mapInSlices<T, R>(items: readonly T[], make: (item: T, at: number) => R): Promise<R[]> {
  const made: R[] = []
  for (const item of items) {
    if (made.length > 0 && made.length % SLICE_ITEMS === 0) await turn()
    made.push(make(item, made.length))
  }
  return made
}

/** Calls `look` with each item until it says that it has seen enough; resolves to the item with which it said so. */
export async function walkInSlices<T>(
  slices: Iterable<readonly T[]> | AsyncIterable<readonly T[]>,
  clock: Clock,
  look: (item: T) => boolean,
): Promise<T | undefined> {
  let begunMs = clock.elapsed()
  // A page that was merely interrupted for longer than a slice does not wait behind everybody's long lists.
  let lane: 'short' | 'long' = 'short'
  for await (const items of slices) {
    for (const [at, item] of items.entries()) {
      if (!look(item)) return item
      if (at % LOOK_EVERY_ITEMS !== 0 || clock.elapsed() - begunMs < SLICE_MS) continue
      await turn(lane)
      lane = 'long'
      begunMs = clock.elapsed()
    }
  }
  return undefined
}

/** Work that gives way wherever it yields. `yield*` makes it part of other work, `inSlices` does it, `atOnce` in one piece. */
export type Steps<T> = Generator<void, T, void>

export async function inSlices<T>(steps: Steps<T>, clock: Pick<Clock, 'elapsed'> = realClock): Promise<T> {
  let begunMs = clock.elapsed()
  for (;;) {
    const { done, value } = steps.next()
    if (done === true) return value
    if (clock.elapsed() - begunMs < SLICE_MS) continue
    await turn()
    begunMs = clock.elapsed()
  }
}

/** Steps that are none: the value is there. */
export function once<T>(value: T): () => Steps<T> {
  // oxlint-disable-next-line require-yield -- there is nothing to wait for
  return function* () {
    return value
  }
}

export function atOnce<T>(steps: Steps<T>): T {
  for (;;) {
    const { done, value } = steps.next()
    if (done === true) return value
  }
}

/** As `flatMap`, for what is made in steps. */
export function* flatMapSteps<T, R>(
  items: Iterable<T>,
  make: (item: T, at: number) => Steps<readonly R[]>,
): Steps<R[]> {
  const all: R[] = []
  let at = 0
  for (const item of items) for (const one of yield* make(item, at++)) all.push(one)
  return all
}

/** How many small steps are taken for one at which work yields: that goes up and down through all that it is part of. */
const STEPS_AT_A_TIME = 64
let taken = 0

/** Asked by work of very many, very small steps: whether to yield at this one. */
export function isDue(): boolean {
  return ++taken % STEPS_AT_A_TIME === 0
}

/** Who waits: in front those whose work is short, behind them the rest. */
const lanes = { short: new Fifo<() => void>(), long: new Fifo<() => void>() }
let isCalled = false

/**
 * Resolves when everybody else has had their turn: who came with other work, and who began to wait for this before. In one
 * turn of the event loop one of each lane goes on, or two of one, each with a few milliseconds' work, however many wait.
 */
export function turn(lane: 'short' | 'long' = 'long'): Promise<void> {
  return new Promise((resolve) => {
    lanes[lane].push(resolve)
    callLater()
  })
}

function callLater(): void {
  const { short, long } = lanes
  if (isCalled || short.size + long.size === 0) return
  isCalled = true
  setImmediate(() => {
    isCalled = false
    const first = short.shift() ?? long.shift()
    const second = long.shift() ?? short.shift()
    first?.()
    second?.()
    callLater()
  })
}
