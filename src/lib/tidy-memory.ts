/**
 * Gives memory back that a burst of work has left behind. The engine collects when something is allocated, and libc keeps
 * what was freed: a program that has become quiet would keep for ever what it needed in its busiest moment.
 */
import { performance } from 'node:perf_hooks'
import { getHeapStatistics } from 'node:v8'

import { type Clock, every } from './clock.ts'
import { memoryReturner, ownBytes } from './return-memory.ts'

const LOOK_MS = 10_000
/** It is quiet when less than this part of the time was work, and worth it when so much has been taken since. */
const QUIET = 0.05
const WORTH_BYTES = 8 << 20
/** Or when it has been quiet for so many looks: what is kept for a minute, or for five, is garbage by then. */
const LOOKS_LATER: ReadonlySet<number> = new Set([10, 40])
/** Collecting stops everything, about a millisecond for each MB. What holds more is collected little by little by the engine. */
const COLLECTED_BYTES = 128 << 20

/** What is tidied: a process, as far as it matters here. */
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
