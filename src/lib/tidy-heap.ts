/**
 * Gives memory back that a burst of work has left behind. The engine collects when something is allocated: a program that
 * has become quiet would keep for ever what it needed in its busiest moment.
 */
import { performance } from 'node:perf_hooks'
import { getHeapStatistics } from 'node:v8'

import { type Clock, every } from './clock.ts'

const LOOK_MS = 10_000
/** It is quiet when less than this part of the time was work, and worth it when so much has been taken since. */
const QUIET = 0.05
const WORTH_BYTES = 8 << 20

/** Until it is disposed of. */
export function tidyWhenQuiet(clock: Clock): Disposable {
  // bin/hyperkube starts Node with it; who starts the program in another way keeps the memory.
  const { gc: collect } = globalThis
  if (collect === undefined) return { [Symbol.dispose]: () => undefined }
  let before = performance.eventLoopUtilization()
  let keptBytes = 0
  const timer = every(clock, LOOK_MS, () => {
    const now = performance.eventLoopUtilization()
    const { utilization } = performance.eventLoopUtilization(now, before)
    before = now
    if (utilization > QUIET || getHeapStatistics().total_heap_size < keptBytes + WORTH_BYTES) return
    collect()
    keptBytes = getHeapStatistics().total_heap_size
  })
  return { [Symbol.dispose]: () => timer.cancel() }
}
