/**
 * Gives memory back that a burst of work has left behind. The engine collects when something is allocated: a program that
 * has become quiet would keep for ever what it needed in its busiest moment.
 */
import { performance } from 'node:perf_hooks'
import { getHeapStatistics, setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'

import { type Clock, every } from './clock.ts'

const LOOK_MS = 10_000
/** It is quiet when less than this part of the time was work, and worth it when so much has been taken since. */
const QUIET = 0.05
const WORTH_BYTES = 8 << 20

/** Until it is disposed of. */
export function tidyWhenQuiet(clock: Clock): Disposable {
  // The function is not there without the flag, and in contexts made before the flag was set not even then.
  setFlagsFromString('--expose-gc')
  const collect = runInNewContext('gc') as () => void
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
