/**
 * Measures costs inside the server under test; Node loads it with `--import` before the server. Between `begin` and
 * `end` it records the processor time of each turn of the event loop and the growth of the heap.
 */
import { performance, PerformanceObserver } from 'node:perf_hooks'
import { getHeapStatistics } from 'node:v8'
import { isMainThread } from 'node:worker_threads'

/** The harness sends one of these over the channel and gets a CostSample for `end`, and a number of ms for `calibrate`. */
export type CostCommand = 'begin' | 'end' | 'calibrate'

export interface CostSample {
  /** Processor time of the longest turn of the event loop, without garbage collection. */
  readonly heldMs: number
  /** Processor time of all turns together that took more than a millisecond, without garbage collection. */
  readonly workMs: number
  readonly gcMs: number
  /** By how much the heap grew at most, as seen between turns of the event loop: what lives, and garbage not yet collected. */
  readonly peakBytes: number
  /** All that was allocated on the heap, most of it garbage by now. */
  readonly allocatedBytes: number
}

/** Shorter turns of the event loop are not looked at: looking costs as well. */
const SHORT_MS = 1
/** After an answer the server may still be at work: the sample waits until it used less than this in a pause. */
const QUIET_MS = 2
const PAUSE_MS = 5
const MAX_PAUSES = 400

interface Span {
  readonly beginMs: number
  readonly endMs: number
  readonly cpuMs: number
}

interface Collection {
  readonly startTime: number
  readonly duration: number
}

interface Heap {
  readonly used_heap_size: number
  readonly external_memory: number
  /** The type library does not know it yet. */
  readonly total_allocated_bytes: number
}

function heap(): Heap {
  return getHeapStatistics()
}

let isMeasuring = false
let spans: Span[] = []
let collections: Collection[] = []
let beginBytes = 0
let beginAllocatedBytes = 0
let peakBytes = 0
let lastMs = 0
let lastCpuMs = 0

function cpuMs(): number {
  const { user, system } = process.threadCpuUsage()
  return (user + system) / 1000
}

/** Runs once in every turn of the event loop. */
function look(): void {
  const nowMs = performance.now()
  if (nowMs - lastMs >= SHORT_MS) {
    const used = cpuMs()
    spans.push({ beginMs: lastMs, endMs: nowMs, cpuMs: used - lastCpuMs })
    const { used_heap_size: heapBytes, external_memory: externalBytes } = heap()
    peakBytes = Math.max(peakBytes, heapBytes + externalBytes)
    lastCpuMs = used
  }
  lastMs = nowMs
  if (isMeasuring) setImmediate(look)
}

function begin(): void {
  spans = []
  collections = []
  const { used_heap_size: heapBytes, external_memory: externalBytes, total_allocated_bytes: allocated } = heap()
  beginBytes = heapBytes + externalBytes
  peakBytes = beginBytes
  beginAllocatedBytes = allocated
  lastMs = performance.now()
  lastCpuMs = cpuMs()
  isMeasuring = true
  setImmediate(look)
}

async function end(): Promise<CostSample> {
  isMeasuring = false
  for (let pauses = 0; pauses < MAX_PAUSES; pauses++) {
    const before = cpuMs()
    await pause()
    look()
    if (cpuMs() - before < QUIET_MS) break
  }
  const computed = spans.map(computingMs)
  return {
    heldMs: Math.max(0, ...computed),
    workMs: computed.reduce((sum, ms) => sum + ms, 0),
    gcMs: collections.reduce((sum, { duration }) => sum + duration, 0),
    peakBytes: peakBytes - beginBytes,
    allocatedBytes: heap().total_allocated_bytes - beginAllocatedBytes,
  }
}

/**
 * Processor time of a span without its collections. Those are known by the clock: the thread gets the same share of a
 * processor while it collects as in the rest of the span.
 */
function computingMs({ beginMs, endMs, cpuMs: used }: Span): number {
  const inGcMs = collections.reduce((sum, { startTime, duration }) => {
    return startTime >= beginMs && startTime < endMs ? sum + duration : sum
  }, 0)
  return used * Math.max(0, 1 - inGcMs / (endMs - beginMs))
}

function pause(): Promise<void> {
  return new Promise((resolve) => void setTimeout(resolve, PAUSE_MS))
}

/** A fixed piece of work much like the server's: parsing, walking, maps and text. The fastest of several runs. */
function calibrate(): number {
  const text = JSON.stringify(Array.from({ length: 20_000 }, (_, n) => ({ name: `n${n}`, value: [n, String(n)] })))
  let best = Infinity
  for (let run = 0; run < 8; run++) {
    const before = cpuMs()
    const parsed = JSON.parse(text) as { name: string; value: unknown[] }[]
    const byName = new Map(parsed.map((item) => [item.name, { ...item }]))
    const names = [...byName.keys()].sort()
    JSON.stringify(names.map((name) => byName.get(name)))
    best = Math.min(best, cpuMs() - before)
  }
  return best
}

if (isMainThread && process.send !== undefined) {
  new PerformanceObserver((list) => {
    for (const { startTime, duration } of list.getEntries()) collections.push({ startTime, duration })
  }).observe({ entryTypes: ['gc'] })
  process.on('message', (command: CostCommand) => {
    if (command === 'end') void end().then((sample) => process.send?.({ cost: sample }))
    else if (command === 'calibrate') process.send?.({ cost: calibrate() })
    else {
      begin()
      process.send?.({ cost: 'begun' })
    }
  })
}
