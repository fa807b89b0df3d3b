/**
 * Audit mode `batch`: collects events and sends them when a batch is full or its first event has waited long enough.
 * Requests do not wait for them. If the buffer is full, the newest events are dropped and counted.
 */
import { createTokenBucket } from '#lib/backoff.ts'
import { type Clock, sleep, type Timer } from '#lib/clock.ts'
import { Fifo } from '#lib/collections/fifo.ts'

import type { AuditEvent } from './event.ts'
import type { ReportLoss, Sink } from './sink.ts'

export interface BatchOptions {
  /** The capacity of the buffer. */
  readonly bufferSize: number
  readonly maxBatchSize: number
  readonly maxBatchWaitMs: number
  /** Batches per second; absent: unlimited. */
  readonly throttle?: { readonly qps: number; readonly burst: number }
  /** True if a batch may be sent while the previous one is in flight. */
  readonly isConcurrent: boolean
}

export interface BufferedTools {
  readonly clock: Clock
  readonly reportLoss: ReportLoss
}

const NAME = 'buffered'

export function createBufferedSink(delegate: Sink, options: BatchOptions, tools: BufferedTools): Sink {
  const batches = new Batches(delegate, options, tools.clock)
  return {
    name: `${NAME}<${delegate.name}>`,
    isStrict: false,
    process(events) {
      const lost = batches.add(events)
      if (lost.length > 0) {
        const why = batches.isClosed ? 'audit backend shut down' : 'audit buffer queue blocked'
        tools.reportLoss(NAME, new Error(why), lost)
      }
      return true
    },
    async close() {
      await batches.close()
      await delegate.close()
    },
  }
}

class Batches {
  readonly #delegate: Sink
  readonly #options: BatchOptions
  readonly #clock: Clock
  readonly #throttle: ((item: undefined) => number) | undefined
  readonly #waiting = new Fifo<AuditEvent>()
  /** Batches in flight. */
  readonly #sending = new Set<Promise<unknown>>()
  /** Set while events wait for more events to fill a batch. */
  #timer: Timer | undefined
  /** The running send loop. */
  #running: Promise<void> | undefined
  isClosed = false

  constructor(delegate: Sink, options: BatchOptions, clock: Clock) {
    this.#delegate = delegate
    this.#options = options
    this.#clock = clock
    const bucket = options.throttle && createTokenBucket<undefined>(clock, options.throttle)
    this.#throttle = bucket && ((item) => bucket.when(item))
  }

  /** Returns the events that do not fit. */
  add(events: readonly AuditEvent[]): readonly AuditEvent[] {
    const { bufferSize, maxBatchSize, maxBatchWaitMs } = this.#options
    if (this.isClosed) return events
    const room = Math.max(0, bufferSize - this.#waiting.size)
    for (const event of events.slice(0, room)) this.#waiting.push(event)
    if (this.#waiting.size >= maxBatchSize) this.#run()
    else if (this.#waiting.size > 0) {
      this.#timer ??= this.#clock.after(maxBatchWaitMs, () => this.#run(), { background: true })
    }
    return events.slice(room)
  }

  async close(): Promise<void> {
    this.isClosed = true
    do {
      this.#run()
      await this.#running
    } while (this.#waiting.size > 0)
    await Promise.all(this.#sending)
  }

  #run(): void {
    this.#timer?.cancel()
    this.#timer = undefined
    this.#running ??= this.#handOn().finally(() => {
      this.#running = undefined
      // Events that arrived during the last send wait for more, or already fill a batch.
      if (this.#waiting.size > 0) this.add([])
    })
  }

  async #handOn(): Promise<void> {
    const { maxBatchSize, isConcurrent } = this.#options
    do {
      const batch: AuditEvent[] = []
      while (batch.length < maxBatchSize && this.#waiting.size > 0) batch.push(this.#waiting.shift() as AuditEvent)
      if (batch.length === 0) return
      const waitMs = this.#throttle?.(undefined) ?? 0
      if (waitMs > 0) await sleep(this.#clock, waitMs)
      const sent = Promise.resolve(this.#delegate.process(batch))
      this.#sending.add(sent)
      void sent.finally(() => this.#sending.delete(sent))
      if (!isConcurrent) await sent
    } while (this.#waiting.size >= maxBatchSize || (this.isClosed && this.#waiting.size > 0))
  }
}
