/**
 * Measures a program under test from inside. It reports the longest block of the event loop and the memory in use
 * four times a second. Node loads it with `--import`.
 */
import { monitorEventLoopDelay } from 'node:perf_hooks'
import { isMainThread } from 'node:worker_threads'

/** One report of the program under test. */
export interface ProbeSample {
  /** The longest the event loop was held since the last sample. */
  readonly heldMs: number
  readonly residentBytes: number
  readonly heapBytes: number
  /** Buffers. */
  readonly externalBytes: number
}

const EVERY_MS = 250
/** How closely the loop is looked at; what is held for less is not seen. */
const RESOLUTION_MS = 10

// Worker threads load it too, and have no channel.
if (isMainThread && process.send !== undefined) {
  const delays = monitorEventLoopDelay({ resolution: RESOLUTION_MS })
  delays.enable()
  setInterval(() => {
    const { rss, heapUsed, external } = process.memoryUsage()
    const heldMs = Math.max(0, delays.max / 1e6 - RESOLUTION_MS)
    delays.reset()
    const sample: ProbeSample = { heldMs, residentBytes: rss, heapBytes: heapUsed, externalBytes: external }
    process.send?.(sample, () => undefined)
  }, EVERY_MS).unref()
  // Neither may keep the program alive.
  process.channel?.unref()
}
