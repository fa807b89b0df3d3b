/**
 * Returns memory to the system after a burst of work, so that an idle program does not keep the memory of its busiest
 * moment.
 */
import { performance } from 'node:perf_hooks'
import { getHeapStatistics } from 'node:v8'

import { type Clock, every } from '../clock.ts'
import { memoryReturner, ownBytes } from './return-memory.ts'

const LOOK_MS = 10_000
/** It is quiet when less than this part of the time was work, and worth it when so much has been taken since. */
const QUIET = 0.05
const WORTH_BYTES = 8 << 20
/** Or when it has been quiet for so many looks: what is kept for a minute, or for five, is garbage by then. */
const LOOKS_LATER: ReadonlySet<number> = new Set([10, 40])
/**
 * A collection blocks the process for about a millisecond per MB. Larger heaps are left to the engine's incremental
 * collection.
 */
const COLLECTED_BYTES = 128 << 20

/** The part of a process that is tidied. */
export interface Holder {
  /** Which part of the time since the last call was work. */
  busy(): number
  /** Without files, which come and go as they are used. */
  ownBytes(): number
  heapBytes(): number
  collect(): void
  /** Returns to the system what was freed, and what of the program itself is not needed now. */
  giveBack(): void
}

/** Until it is disposed of. */
export function tidyWhenQuiet(clock: Clock, holder: Holder | undefined = thisProcess()): Disposable {
  if (holder === undefined) return { [Symbol.dispose]: () => undefined }
  let keptBytes = 0
  let quietLooks = 0
  let isToReturn = false
  const timer = every(clock, LOOK_MS, () => {
    if (holder.busy() > QUIET) {
      quietLooks = 0
      isToReturn = false
      return
    }
    quietLooks++
    if (isToReturn) {
      // One look later: what was collected is freed by another thread.
      holder.giveBack()
      keptBytes = holder.ownBytes()
      isToReturn = false
    } else if (holder.ownBytes() >= keptBytes + WORTH_BYTES || LOOKS_LATER.has(quietLooks)) {
      if (holder.heapBytes() <= COLLECTED_BYTES) holder.collect()
      isToReturn = true
    }
  })
  return { [Symbol.dispose]: () => timer.cancel() }
}

/** Undefined unless it was started by bin/hyperkube, which lets it collect. */
export function thisProcess(): Holder | undefined {
  const { gc } = globalThis
  if (gc === undefined) return undefined
  let before = performance.eventLoopUtilization()
  let giveBack: (() => void) | undefined
  return {
    busy() {
      const now = performance.eventLoopUtilization()
      const { utilization } = performance.eventLoopUtilization(now, before)
      before = now
      return utilization
    },
    ownBytes,
    heapBytes: () => getHeapStatistics().total_heap_size,
    collect: () => gc(),
    giveBack() {
      giveBack ??= memoryReturner()
      giveBack()
    },
  }
}
