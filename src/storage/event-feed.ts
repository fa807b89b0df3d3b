/**
 * EventFeed: what happened lately, for any number of watchers. A watcher is only a position (the next revision it
 * wants), never a queue: it pulls from a bounded stretch of recent commits kept here, and when it has fallen out of
 * that, or starts in the past, from the backend's history.
 */
import { every, type Clock, type Timer } from '#lib/clock.ts'

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
  /** The revision the store has now: later ones will be published. */
  readonly revision: Revision
  /** Commits after `revision` that are known at once, in order; the store has the last one's then. Kept as they are. */
  readonly published?: readonly WatchBatch[]
  /** How often an idle watcher hears how far the store has come. */
  readonly progressEveryMs?: number
  /** How much is kept for watchers that are a little behind, in bytes of values. Infinity: until told to forget. */
  readonly keepBytes?: number
  /**
   * The events of a stretch of the past; `revision` of the answer says how far it got, at least one revision and whole
   * revisions only. Throws `compacted`.
   */
  readonly history: (request: HistoryRequest) => Promise<WatchBatch>
}

/** At most about so many events in one batch, so that one turn of the event loop stays short. */
const BATCH_EVENTS = 512
/** Recent events kept in memory: a second of heavy traffic (the cache is never that far behind), so that only a stalled watcher has to go to the disk. */
const KEEP_BYTES = 2 << 20
/** Well below any sensible compaction window, and rare enough to cost nothing. */
const PROGRESS_EVERY_MS = 5000
/** What an event costs besides its value. */
const EVENT_BYTES = 256

interface Position {
  /** The next revision to look at. */
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
  /** In order of revision. Holds every commit after `#floor` and up to `#head` that had events. */
  #recent: WatchBatch[] = []
  /** Where `#recent` begins in its array: what is before has been dropped and is cut off now and then. */
  #first = 0
  #recentBytes = 0
  #floor: Revision
  #head: Revision
  #failure: StorageError | undefined
  readonly #waiting = new Set<() => void>()
  /** Counts the progress ticks: a watcher that sees it change reports its position. */
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

  /** Makes a commit known. Revisions must ascend. The batch is kept as it is. */
  publish(batch: WatchBatch): void {
    this.#head = batch.revision
    if (batch.events.length > 0) {
      this.#recent.push(batch)
      this.#recentBytes += this.#bytesOf(batch)
      while (this.#recentBytes > this.#keepBytes && this.#first < this.#recent.length - 1) this.#dropFirst()
    }
    this.#wake()
  }

  /** Drops what is kept of revisions before `revision`: watchers that want it get it, or an error, from the history. */
  forget(revision: Revision): void {
    while (this.#first < this.#recent.length && this.#at(this.#first).revision < revision) this.#dropFirst()
    this.#cutOff()
    this.#floor = Math.max(this.#floor, Math.min(revision - 1, this.#head))
  }

  /** Ends every watch, and each later one, with `failure`. */
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

  /** Waits for something to deliver; undefined when the watch has been aborted. */
  async #pull(options: WatchOptions, at: Position): Promise<WatchBatch | undefined> {
    const { start, end, signal } = options
    while (!signal.aborted) {
      this.#throwFailure()
      if (at.next > this.#head) {
        const isDue = at.ticks !== this.#ticks && at.next - 1 > at.reported
        at.ticks = this.#ticks
        if (isDue) return { revision: at.next - 1, events: [] }
        await this.#news(signal)
        continue
      }
      const batch = at.next <= this.#floor ? await this.#past(options, at.next) : this.#collect(start, end, at.next)
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
  async #past({ start, end, signal }: WatchOptions, from: Revision): Promise<WatchBatch | undefined> {
    try {
      return await this.#history({ start, end, from, through: this.#head, signal })
    } catch (error) {
      if (signal.aborted) return undefined
      throw error
    }
  }

  /** What happened from `next` on, of the keys asked for, up to the head or until the batch is full. */
  #collect(start: string, end: string | undefined, next: Revision): WatchBatch {
    const events: StorageEvent[] = []
    for (let at = this.#indexOf(next); at < this.#recent.length; at++) {
      const commit = this.#at(at)
      for (const event of commit.events) if (covers(start, end, event.key)) events.push(event)
      if (events.length >= BATCH_EVENTS) return { revision: commit.revision, events }
    }
    return { revision: this.#head, events }
  }

  /** The first kept commit that is not before `revision`. */
  #indexOf(revision: Revision): number {
    let low = this.#first
    let high = this.#recent.length
    while (low < high) {
      const middle = (low + high) >>> 1
      if (this.#at(middle).revision < revision) low = middle + 1
      else high = middle
    }
    return low
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

  /** 0 where nobody counts. */
  #bytesOf({ events }: WatchBatch): number {
    if (this.#keepBytes === Infinity) return 0
    let bytes = 0
    for (const { value, previous } of events) bytes += EVENT_BYTES + value.length + (previous?.value.length ?? 0)
    return bytes
  }

  #news(signal: AbortSignal): Promise<void> {
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

/** The failure of a read or watch that needs `revision`, which is older than what is kept. */
export function compactedError(revision: Revision, compactedRevision: Revision): StorageError {
  return new StorageError(
    'compacted',
    `Revision ${revision} is no longer kept: the oldest is ${compactedRevision}; read the current state and go on from there`,
    { compactedRevision },
  )
}

/** The failure of a read that needs `revision`, which has not happened yet. */
export function futureRevisionError(revision: Revision, current: Revision): StorageError {
  return new StorageError('future-revision', `Revision ${revision} has not happened yet: the store is at ${current}`)
}
