/**
 * EventFeed: delivers recent events to any number of watchers. A watcher is only a position in the history: it reads
 * recent commits from memory and older ones from the backend's history.
 */
import { every, type Clock, type Timer } from '#lib/clock.ts'
import { partitionPoint } from '#lib/collections/partition-point.ts'

import { StorageError, type Revision, type StorageEvent, type WatchBatch, type WatchOptions } from './backend.ts'

export interface HistoryRequest {
  readonly start: string
  readonly end: string | undefined
  /** The first revision wanted. */
  readonly from: Revision
  /** The last one wanted. */
  readonly through: Revision
  readonly signal: AbortSignal
}

export interface EventFeedOptions {
  readonly clock: Clock
  /** The current revision of the store: later ones will be published. */
  readonly revision: Revision
  /**
   * Commits after `revision` that are known at once, in order; the last one is then the current revision. Not copied.
   */
  readonly published?: readonly WatchBatch[]
  /** The interval of progress reports to idle watchers. */
  readonly progressEveryMs?: number
  /** The bytes of values kept for slightly slow watchers. Infinity: until `forget`. */
  readonly keepBytes?: number
  /**
   * The events of a part of the past; `revision` of the answer tells how far it got: at least one revision, and whole
   * revisions only. Throws `compacted`.
   */
  readonly history: (request: HistoryRequest) => Promise<WatchBatch>
}

/** The approximate maximum of events in one batch, so that a turn of the event loop stays short. */
const BATCH_EVENTS = 512
/**
 * Recent events in memory: a second of heavy traffic (the cache is never that far behind), so that only a stalled
 * watcher reads from the disk.
 */
const KEEP_BYTES = 2 << 20
/** Well below any sensible compaction window, and rare enough to cost nothing. */
const PROGRESS_EVERY_MS = 5000
/** The overhead of an event beside its value. */
const EVENT_BYTES = 256

interface Position {
  /** The next revision to read. */
  next: Revision
  /** The revision of the last batch the watcher got. */
  reported: Revision
  /** The progress ticks seen. */
  ticks: number
}

export class EventFeed {
  readonly #history: EventFeedOptions['history']
  readonly #keepBytes: number
  readonly #progress: Timer
  /** Ordered by revision. Contains every commit after `#floor` and up to `#head` that had events. */
  #recent: WatchBatch[] = []
  /** The start of `#recent` in its array: dropped entries before it are cut off in bulk. */
  #first = 0
  #recentBytes = 0
  #floor: Revision
  #head: Revision
  #failure: StorageError | undefined
  readonly #waiting = new Set<() => void>()
  /** Counts the progress ticks: a watcher that sees a change reports its position. */
  #ticks = 0

  constructor(options: EventFeedOptions) {
    const { revision, published = [], keepBytes = KEEP_BYTES } = options
    this.#floor = revision
    this.#head = published.at(-1)?.revision ?? revision
    this.#history = options.history
    this.#keepBytes = keepBytes
    this.#recent = published.filter(({ events }) => events.length > 0)
    for (const batch of this.#recent) this.#recentBytes += this.#bytesOf(batch)
    this.#progress = every(options.clock, options.progressEveryMs ?? PROGRESS_EVERY_MS, () => {
      this.#ticks++
      this.#wake()
    })
  }

  /** The revision up to which everything has been published. */
  get revision(): Revision {
    return this.#head
  }

  /** Publishes a commit. Revisions must ascend. The batch is not copied. */
  publish(batch: WatchBatch): void {
    this.#head = batch.revision
    if (batch.events.length > 0) {
      this.#recent.push(batch)
      this.#recentBytes += this.#bytesOf(batch)
      while (this.#recentBytes > this.#keepBytes && this.#first < this.#recent.length - 1) this.#dropFirst()
    }
    this.#wake()
  }

  /** Drops commits before `revision`: watchers get them, or an error, from the history. */
  forget(revision: Revision): void {
    while (this.#first < this.#recent.length && this.#at(this.#first).revision < revision) this.#dropFirst()
    this.#cutOff()
    this.#floor = Math.max(this.#floor, Math.min(revision - 1, this.#head))
  }

  /** Ends every current and later watch with `failure`. */
  close(failure: StorageError): void {
    this.#failure ??= failure
    this.#progress.cancel()
    this.#wake()
  }

  async *watch(options: WatchOptions): AsyncGenerator<WatchBatch, void, undefined> {
    this.#throwFailure()
    const next = Math.max(1, options.from ?? this.#head + 1)
    const at: Position = { next, reported: next - 1, ticks: this.#ticks }
    if (options.from === undefined && !options.signal.aborted) yield { revision: at.reported, events: [] }
    for (let batch = await this.#pull(options, at); batch !== undefined; batch = await this.#pull(options, at)) {
      at.reported = batch.revision
      yield batch
    }
  }

  /** Waits for something to deliver; undefined if the watch was aborted or is complete. */
  async #pull(options: WatchOptions, at: Position): Promise<WatchBatch | undefined> {
    const { signal, through = Infinity } = options
    while (!signal.aborted && at.next <= through) {
      this.#throwFailure()
      if (at.next > this.#head) {
        const isDue = at.ticks !== this.#ticks && at.next - 1 > at.reported
        at.ticks = this.#ticks
        if (isDue) return { revision: at.next - 1, events: [] }
        await this.#waitForCommit(signal)
        continue
      }
      const batch = at.next <= this.#floor ? await this.#past(options, at.next) : this.#collect(options, at.next)
      if (batch === undefined) return undefined
      at.next = batch.revision + 1
      if (batch.events.length > 0) return batch
    }
    return undefined
  }

  #throwFailure(): void {
    if (this.#failure !== undefined) throw this.#failure
  }

  /** From the history; undefined when aborted meanwhile. */
  async #past(options: WatchOptions, from: Revision): Promise<WatchBatch | undefined> {
    const { start, end, signal, through = this.#head } = options
    try {
      return await this.#history({ start, end, from, through: Math.min(through, this.#head), signal })
    } catch (error) {
      if (signal.aborted) return undefined
      throw error
    }
  }

  /** The events from `next` on, for the requested keys, up to the last one wanted or until the batch is full. */
  #collect({ start, end, through = this.#head }: WatchOptions, next: Revision): WatchBatch {
    const events: StorageEvent[] = []
    for (let at = this.#indexOf(next); at < this.#recent.length; at++) {
      const commit = this.#at(at)
      if (commit.revision > through) break
      for (const event of commit.events) if (covers(start, end, event.key)) events.push(event)
      if (events.length >= BATCH_EVENTS) return { revision: commit.revision, events }
    }
    return { revision: Math.min(through, this.#head), events }
  }

  /** The first kept commit that is not before `revision`. */
  #indexOf(revision: Revision): number {
    return partitionPoint(this.#first, this.#recent.length, (index) => this.#at(index).revision < revision)
  }

  #at(index: number): WatchBatch {
    return this.#recent[index] as WatchBatch
  }

  #dropFirst(): void {
    const dropped = this.#at(this.#first++)
    this.#floor = dropped.revision
    this.#recentBytes -= this.#bytesOf(dropped)
    if (this.#first >= 1024 && this.#first * 2 >= this.#recent.length) this.#cutOff()
  }

  #cutOff(): void {
    this.#recent = this.#recent.slice(this.#first)
    this.#first = 0
  }

  /** 0 if bytes are not counted. */
  #bytesOf({ events }: WatchBatch): number {
    if (this.#keepBytes === Infinity) return 0
    let bytes = 0
    for (const { value, previous } of events) bytes += EVENT_BYTES + value.length + (previous?.value.length ?? 0)
    return bytes
  }

  #waitForCommit(signal: AbortSignal): Promise<void> {
    return new Promise((resolve) => {
      const go = (): void => {
        this.#waiting.delete(go)
        signal.removeEventListener('abort', go)
        resolve()
      }
      this.#waiting.add(go)
      signal.addEventListener('abort', go, { once: true })
    })
  }

  #wake(): void {
    for (const go of this.#waiting) go()
  }
}

/** Whether `key` is in the range, in the sense of RangeOptions. */
export function covers(start: string, end: string | undefined, key: string): boolean {
  return end === undefined ? key === start : key >= start && key < end
}

/** The error of a read or watch that needs `revision`, which is older than the kept history. */
export function compactedError(revision: Revision, compactedRevision: Revision): StorageError {
  return new StorageError(
    'compacted',
    `Revision ${revision} is no longer kept: the oldest is ${compactedRevision}; read the current state and go on from there`,
    { compactedRevision },
  )
}

/** The error of a read that needs `revision`, which is in the future. */
export function futureRevisionError(revision: Revision, current: Revision): StorageError {
  return new StorageError('future-revision', `Revision ${revision} has not happened yet: the store is at ${current}`)
}
