/** Asserts in tests that the processor time grows linearly with the input. */
import assert from 'node:assert/strict'

/** Four times the input costs about 4.5 times at n log n, and 16 times at n². The rest is for caches and the collector. */
const FACTOR = 4
const ALLOWED_RATIO = 9
const HOPELESS_RATIO = 40
/** Of several runs the fastest counts: other programs and garbage collection only ever add to one. */
const RUNS = 5
/** Less than this is not measured: the clock is too coarse, and the work too cheap to matter. */
const MIN_MS = 2

/** Processor time of this thread, so that waiting for a processor does not count. */
function cpuMs(): number {
  const { user, system } = process.threadCpuUsage()
  return (user + system) / 1000
}

/** Ends early when a run takes so long that no other will be below `hopelessMs`. */
function fastest<T>(make: () => T, work: (input: T) => unknown, hopelessMs = Infinity): number {
  let best = Infinity
  for (let run = 0; run < RUNS && (run === 0 || best <= hopelessMs); run++) {
    const input = make()
    const beginMs = cpuMs()
    work(input)
    best = Math.min(best, cpuMs() - beginMs)
  }
  return best
}

/** A ratio that is too high is measured again: a busy machine slows down one run, quadratic work is slow in all. */
const TRIES = 3

/** `make` gives an input of the given size, anew each time; `size` should be work of some milliseconds. */
export function assertGrowth<T>(size: number, make: (size: number) => T, work: (input: T) => unknown): void {
  let found = measure(size, make, work)
  for (let tries = 1; tries < TRIES && found.ratio > ALLOWED_RATIO; tries++) found = measure(size, make, work)
  const { ratio, small, large } = found
  assert.ok(
    ratio <= ALLOWED_RATIO,
    `${FACTOR} times the input took ${ratio.toFixed(1)} times as long: ${small.toFixed(1)} and ${large.toFixed(1)} ms`,
  )
}

interface Growth {
  readonly small: number
  readonly large: number
  readonly ratio: number
}

function measure<T>(size: number, make: (size: number) => T, work: (input: T) => unknown): Growth {
  const small = Math.max(
    MIN_MS,
    fastest(() => make(size), work),
  )
  const large = fastest(() => make(size * FACTOR), work, small * HOPELESS_RATIO)
  return { small, large, ratio: large / small }
}
