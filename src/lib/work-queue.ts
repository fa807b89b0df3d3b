/**
 * A queue of keys with the guarantees of client-go's util/workqueue (v1.36). A key added several times is processed
 * once. A key added while a worker processes it is processed again afterwards.
 */
import { abortError, onAbort } from './abort.ts'
import { createControllerRateLimiter, type RateLimiter } from './backoff.ts'
import type { Clock, Timer } from './clock.ts'
import { Fifo } from './collections/fifo.ts'
import { KeyedHeap } from './collections/heap.ts'

export interface WorkQueueOptions<K> {
  readonly clock: Clock
  /** Decides how long `addRateLimited` waits. Default: what controllers use. */
  readonly rateLimiter?: RateLimiter<K>
  readonly metrics?: WorkQueueMetrics
}

/** The metrics of a queue. Handles of metrics.ts fit. */
export interface WorkQueueMetrics {
  /** How many keys wait to be worked on. */
  readonly depth: { set(value: number): void }
  readonly adds: { inc(): void }
  /** From being added to being taken. */
  readonly queueSeconds: { observe(seconds: number): void }
  /** From being taken to being done. */
  readonly workSeconds: { observe(seconds: number): void }
  readonly retries: { inc(): void }
  /** Called once, with a function to ask at any time how long the work in hand has taken so far. */
  watch(unfinished: () => UnfinishedWork): void
}

export interface UnfinishedWork {
  readonly totalSeconds: number
  readonly longestSeconds: number
}

/** A handler's request: requeue this key later, without an error. */
export interface Requeue {
  readonly requeueAfterMs: number
}

export interface WorkerOptions<K> {
  /** How many keys are worked on at a time. */
  readonly workers: number
  /** Ends the work: what waits in the queue stays undone, handlers see the same signal. */
  readonly signal: AbortSignal
  /** The number of retries of a failing key until it is added again. Default: unlimited. */
  readonly maxRetries?: number
  /** Works on one key. When it throws, the key comes back rate limited; otherwise its failures are forgotten. */
  handle(key: K, signal: AbortSignal): Promise<Requeue | void>
  /** Receives every error of `handle`. Its own errors end the workers. */
  onError(error: unknown, key: K): void
}

/** The maximum time for which workers run without I/O before they yield to the event loop. */
const SLICE_MS = 5

interface Delayed<K> {
  readonly key: K
  readonly dueMs: number
}

interface Waiter<K> {
  take(key: K | undefined): void
}

export class WorkQueue<K extends string | number | bigint | object> {
  readonly #clock: Clock
  readonly #limiter: RateLimiter<K>
  readonly #metrics: WorkQueueMetrics | undefined

  /** The order of work. Every key is in `#dirty` and not in `#processing`. */
  readonly #ready = new Fifo<K>()
  /** Keys that need work, and since when. Those also in `#processing` get into `#ready` when that is done. */
  readonly #dirty = new Map<K, number>()
  /** Keys being worked on, and since when. */
  readonly #processing = new Map<K, number>()
  /** Those in `get()`. Not empty only while `#ready` is. */
  readonly #waiters = new Set<Waiter<K>>()

  /** Keys to be added later. */
  readonly #delayed = new KeyedHeap<Delayed<K>, K>({ key: ({ key }) => key, compare: (a, b) => a.dueMs - b.dueMs })
  /** Set for the first of `#delayed`, at `#timerDueMs`. */
  #timer: Timer | undefined
  #timerDueMs = Infinity

  #shuttingDown = false
  readonly #drainers = new Set<() => void>()

  constructor(options: WorkQueueOptions<K>) {
    this.#clock = options.clock
    this.#limiter = options.rateLimiter ?? createControllerRateLimiter(options.clock)
    this.#metrics = options.metrics
    this.#metrics?.watch(() => this.#unfinished())
  }

  /** How many keys are ready to be taken. */
  get size(): number {
    return this.#ready.size
  }

  get shuttingDown(): boolean {
    return this.#shuttingDown
  }

  /** Marks the key as needing work. Does nothing when it is marked already or the queue is shutting down. */
  add(key: K): void {
    if (this.#shuttingDown || this.#dirty.has(key)) return
    this.#dirty.set(key, this.#since())
    if (this.#metrics !== undefined) {
      this.#metrics.adds.inc()
      this.#metrics.depth.set(this.#dirty.size)
    }
    if (!this.#processing.has(key)) this.#offer(key)
  }

  /** Adds the key once `delayMs` have passed. Of several delays for one key the one that ends first counts. */
  addAfter(key: K, delayMs: number): void {
    if (this.#shuttingDown) return
    this.#metrics?.retries.inc()
    if (delayMs <= 0) return this.add(key)
    // In whole milliseconds: what is added up in fractions may never quite come.
    const dueMs = this.#clock.elapsed() + Math.ceil(delayMs)
    const known = this.#delayed.get(key)
    if (known !== undefined && known.dueMs <= dueMs) return
    this.#delayed.put({ key, dueMs })
    this.#arm()
  }

  /** Adds the key when the rate limiter says so, which counts as one more failure of it. */
  addRateLimited(key: K): void {
    this.addAfter(key, this.#limiter.when(key))
  }

  /** The key is not being retried any more, for good or ill: the rate limiter starts anew for it. */
  forget(key: K): void {
    this.#limiter.forget(key)
  }

  /** How often the key was added rate limited since it was last forgotten. */
  numRequeues(key: K): number {
    return this.#limiter.numRequeues(key)
  }

  /**
   * Takes the next key, waiting for one if need be; `done` must be called with it. Undefined when the queue is shut
   * down and empty. Rejects with the signal's reason when that is aborted first.
   */
  get(signal?: AbortSignal): Promise<K | undefined> {
    if (signal?.aborted) return Promise.reject(abortError(signal))
    const key = this.#ready.shift()
    if (key !== undefined) return Promise.resolve(this.#begin(key))
    if (this.#shuttingDown) return Promise.resolve(undefined)
    return new Promise((resolve, reject) => {
      const waiter: Waiter<K> = {
        take(key) {
          release()
          resolve(key)
        },
      }
      this.#waiters.add(waiter)
      const release = onAbort(signal, () => {
        this.#waiters.delete(waiter)
        reject(abortError(signal as AbortSignal))
      })
    })
  }

  /** The work on the key is over. If it was added in the meantime it is ready again. */
  done(key: K): void {
    const startedAt = this.#processing.get(key)
    if (startedAt === undefined) return
    this.#processing.delete(key)
    this.#metrics?.workSeconds.observe(this.#secondsSince(startedAt))
    if (this.#dirty.has(key)) this.#offer(key)
    this.#checkDrained()
  }

  /** Takes no more keys and drops the delayed ones. Those ready can still be taken; after them `get` gives undefined. */
  shutDown(): void {
    this.#close()
    this.#release()
  }

  /**
   * As `shutDown`, and waits until every key that was ready or being worked on is done, for which there must be
   * workers. A later `shutDown` ends the wait; an abort rejects it.
   */
  shutDownWithDrain(signal?: AbortSignal): Promise<void> {
    this.#close()
    return new Promise((resolve, reject) => {
      const drained = (): void => {
        release()
        resolve()
      }
      this.#drainers.add(drained)
      const release = onAbort(signal, () => {
        this.#drainers.delete(drained)
        reject(abortError(signal as AbortSignal))
      })
      this.#checkDrained()
    })
  }

  /**
   * Runs workers until the signal is aborted, or the queue is shut down and empty. Resolves when the last handler has
   * returned. The queue is shut down then.
   */
  async run(options: WorkerOptions<K>): Promise<void> {
    const release = onAbort(options.signal, () => this.shutDown())
    const pace = createPacer(this.#clock)
    const work = Array.from({ length: options.workers }, () => this.#work(options, pace))
    try {
      await Promise.all(work)
    } finally {
      release()
      this.shutDown()
      await Promise.allSettled(work)
    }
  }

  async #work(options: WorkerOptions<K>, pace: () => Promise<void> | undefined): Promise<void> {
    while (!options.signal.aborted) {
      const key = await this.get()
      if (key === undefined) return
      try {
        // Not started after the abort, though it was taken before.
        if (!options.signal.aborted) await this.#attempt(key, options)
      } finally {
        this.done(key)
      }
      const pause = pace()
      if (pause !== undefined) await pause
    }
  }

  async #attempt(key: K, options: WorkerOptions<K>): Promise<void> {
    try {
      const requeue = await options.handle(key, options.signal)
      this.forget(key)
      if (requeue) this.addAfter(key, requeue.requeueAfterMs)
    } catch (error) {
      if (this.numRequeues(key) < (options.maxRetries ?? Infinity)) this.addRateLimited(key)
      else this.forget(key)
      // A handler that ends because of the abort has not failed.
      if (!(options.signal.aborted && error === options.signal.reason)) options.onError(error, key)
    }
  }

  /** The key, dirty and not being processed, goes to a waiter or into the queue. */
  #offer(key: K): void {
    for (const waiter of this.#waiters) {
      this.#waiters.delete(waiter)
      waiter.take(this.#begin(key))
      return
    }
    this.#ready.push(key)
  }

  #begin(key: K): K {
    const metrics = this.#metrics
    if (metrics !== undefined) metrics.queueSeconds.observe(this.#secondsSince(this.#dirty.get(key) ?? 0))
    this.#dirty.delete(key)
    this.#processing.set(key, this.#since())
    metrics?.depth.set(this.#dirty.size)
    return key
  }

  /** Sets the timer for the first delayed key, unless it is set for that moment already. */
  #arm(): void {
    const dueMs = this.#delayed.peek()?.dueMs ?? Infinity
    if (dueMs === this.#timerDueMs) return
    this.#timer?.cancel()
    this.#timerDueMs = dueMs
    if (dueMs !== Infinity) this.#timer = this.#clock.after(dueMs - this.#clock.elapsed(), () => this.#addDue())
  }

  #addDue(): void {
    this.#timerDueMs = Infinity
    const now = this.#clock.elapsed()
    for (let next = this.#delayed.peek(); next !== undefined && next.dueMs <= now; next = this.#delayed.peek()) {
      this.#delayed.pop()
      this.add(next.key)
    }
    this.#arm()
  }

  #close(): void {
    this.#shuttingDown = true
    this.#delayed.clear()
    this.#arm()
    for (const waiter of this.#waiters) waiter.take(undefined)
    this.#waiters.clear()
  }

  #checkDrained(): void {
    if (this.#shuttingDown && this.#ready.size === 0 && this.#processing.size === 0) this.#release()
  }

  #release(): void {
    for (const drained of this.#drainers) drained()
    this.#drainers.clear()
  }

  #unfinished(): UnfinishedWork {
    let totalSeconds = 0
    let longestSeconds = 0
    for (const startedAt of this.#processing.values()) {
      const seconds = this.#secondsSince(startedAt)
      totalSeconds += seconds
      longestSeconds = Math.max(longestSeconds, seconds)
    }
    return { totalSeconds, longestSeconds }
  }

  /** Reading the clock costs more than the rest of `add`: only with metrics. */
  #since(): number {
    return this.#metrics === undefined ? 0 : this.#clock.elapsed()
  }

  #secondsSince(startedAt: number): number {
    return (this.#clock.elapsed() - startedAt) / 1000
  }
}

/**
 * Gives a promise to wait for when it is time for others. Handlers that never wait for I/O chain microtask to
 * microtask, and no timer or socket would be served until the queue is empty.
 */
function createPacer(clock: Clock): () => Promise<void> | undefined {
  let startedAt = clock.elapsed()
  let turn: Promise<void> | undefined
  return () => {
    if (turn === undefined && clock.elapsed() - startedAt >= SLICE_MS) {
      turn = new Promise((resolve) =>
        setImmediate(() => {
          turn = undefined
          startedAt = clock.elapsed()
          resolve()
        }),
      )
    }
    return turn
  }
}
