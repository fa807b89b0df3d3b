/**
 * Watcher: serves all watches of this process from one watch of the whole keyspace. A watcher that starts in the past
 * reads etcd's history with a separate watch.
 */
import { onAbort } from '#lib/abort.ts'
import { every, type Timer } from '#lib/clock.ts'

import { StorageError, type Revision, type StorageEvent, type WatchBatch, type WatchOptions } from '../backend.ts'
import { covers, EventFeed, type HistoryRequest } from '../event-feed.ts'
import { follow, type WatchTools } from './watch-stream.ts'

export interface WatcherOptions extends WatchTools {
  /** The latest revision, read linearizably. */
  readonly currentRevision: (signal?: AbortSignal) => Promise<Revision>
  /** The interval of progress reports to idle watchers. */
  readonly progressEveryMs?: number
}

/** The approximate limit of history in one batch. */
const PAST_EVENTS = 512
const PAST_BYTES = 4 << 20
/** Readers of the past return at once; without this etcd would have to search again. */
const PARK_MS = 5000
/** An acknowledged change reaches the watch within milliseconds; after this time it is requested again. */
const LAG_MS = 3000

/** The feed and its source. */
interface Live {
  readonly feed: EventFeed
  readonly stop: AbortController
}

export class Watcher {
  readonly #options: WatcherOptions
  #live: Live | undefined
  #opening: Promise<Live> | undefined
  readonly #past: PastReaders
  #closed: StorageError | undefined

  constructor(options: WatcherOptions) {
    this.#options = options
    this.#past = new PastReaders(options)
  }

  async *watch(options: WatchOptions): AsyncGenerator<WatchBatch, void, undefined> {
    const { signal } = options
    if (this.#closed !== undefined) throw this.#closed
    if (signal.aborted) return
    try {
      const { feed } = await abortable(this.#open(), signal)
      let { from } = options
      if (from === undefined) {
        const revision = await this.#options.currentRevision(signal)
        from = revision + 1
        yield { revision, events: [] }
      }
      yield* feed.watch({ ...options, from })
    } catch (error) {
      if (signal.aborted) return
      throw this.#closed ?? error
    }
  }

  /** Everything before `revision` has been compacted. */
  forget(revision: Revision): void {
    this.#live?.feed.forget(revision)
  }

  /** Ends every current and later watch with `reason`. */
  close(reason: StorageError): void {
    this.#closed = reason
    this.#past.close()
    this.#live?.stop.abort()
    this.#live?.feed.close(reason)
  }

  /** The feed, started by the first watch, and again after a failure. */
  #open(): Promise<Live> {
    if (this.#live !== undefined) return Promise.resolve(this.#live)
    this.#opening ??= this.#start().finally(() => (this.#opening = undefined))
    return this.#opening
  }

  async #start(): Promise<Live> {
    const { clock, progressEveryMs, currentRevision } = this.#options
    const revision = await currentRevision()
    if (this.#closed !== undefined) throw this.#closed
    const feed = new EventFeed({
      clock,
      revision,
      ...(progressEveryMs !== undefined && { progressEveryMs }),
      history: (request) => this.#past.read(request),
    })
    this.#live = { feed, stop: new AbortController() }
    void this.#fill(this.#live)
    return this.#live
  }

  async #fill(live: Live): Promise<void> {
    const { feed, stop } = live
    let reopen = (): void => undefined
    const guard = this.#guardAgainstLag(feed, () => reopen())
    const onOpen = (cancel: () => void): void => void (reopen = cancel)
    try {
      for await (const batches of follow(this.#options, { from: feed.revision + 1, signal: stop.signal, onOpen })) {
        for (const batch of batches) feed.publish(batch)
        this.#options.client.saw(feed.revision)
      }
    } catch (error) {
      if (this.#live === live) this.#live = undefined
      const isOurs = error instanceof StorageError
      feed.close(isOurs ? error : new StorageError('unavailable', String(error), { cause: error }))
    } finally {
      guard.cancel()
    }
  }

  /** Opens another stream if a known revision does not arrive through the watch. */
  #guardAgainstLag(feed: EventFeed, reopen: () => void): Timer {
    const { client, clock, log } = this.#options
    let last = { revision: feed.revision, atMs: clock.elapsed() }
    return every(clock, LAG_MS / 3, () => {
      if (feed.revision !== last.revision || client.seen <= feed.revision) {
        last = { revision: feed.revision, atMs: clock.elapsed() }
      } else if (clock.elapsed() - last.atMs >= LAG_MS) {
        last = { revision: feed.revision, atMs: clock.elapsed() }
        log(`The watch of etcd is at revision ${feed.revision} although ${client.seen} has happened`)
        reopen()
      }
    })
  }
}

/** Watches of the past, each kept for a while where its reader stopped. */
class PastReaders {
  readonly #tools: WatchTools
  /** By the next revision that they deliver. */
  readonly #parked = new Map<Revision, PastReader>()
  readonly #all = new Set<PastReader>()

  constructor(tools: WatchTools) {
    this.#tools = tools
  }

  async read({ start, end, from, through, signal }: HistoryRequest): Promise<WatchBatch> {
    const reader = this.#take(from)
    const release = onAbort(signal, () => reader.stop.abort())
    const events: StorageEvent[] = []
    // An unused etcd is at revision 1, which has no event: none will ever arrive.
    let [revision, bytes] = [Math.max(from - 1, 1), 0]
    try {
      while (revision < through && events.length < PAST_EVENTS && bytes < PAST_BYTES) {
        const { done, value } = await reader.batches.next()
        if (done) throw new StorageError('closed', 'The store was closed')
        revision = value.at(-1)?.revision ?? revision
        events.push(...value.flatMap((batch) => batch.events.filter(({ key }) => covers(start, end, key))))
        bytes += value.reduce((sum, batch) => sum + bytesOf(batch), 0)
      }
    } catch (error) {
      this.#drop(reader)
      throw error
    } finally {
      release()
    }
    this.#park(revision + 1, reader)
    return { revision, events }
  }

  close(): void {
    for (const reader of this.#all) this.#drop(reader)
  }

  #take(from: Revision): PastReader {
    const parked = this.#parked.get(from)
    if (parked !== undefined) {
      this.#parked.delete(from)
      parked.timer?.cancel()
      return parked
    }
    const stop = new AbortController()
    const reader = { stop, batches: follow(this.#tools, { from, signal: stop.signal }), timer: undefined }
    this.#all.add(reader)
    return reader
  }

  #park(next: Revision, reader: PastReader): void {
    if (this.#parked.has(next) || reader.stop.signal.aborted) return this.#drop(reader)
    reader.timer = this.#tools.clock.after(
      PARK_MS,
      () => {
        this.#parked.delete(next)
        this.#drop(reader)
      },
      { background: true },
    )
    this.#parked.set(next, reader)
  }

  #drop(reader: PastReader): void {
    reader.timer?.cancel()
    reader.stop.abort()
    this.#all.delete(reader)
    // It was aborted; its result does not matter.
    reader.batches.return().catch(() => undefined)
  }
}

interface PastReader {
  readonly stop: AbortController
  readonly batches: AsyncGenerator<readonly WatchBatch[], void, undefined>
  timer: Timer | undefined
}

function bytesOf(batch: WatchBatch): number {
  let bytes = 0
  for (const { value, previous } of batch.events) bytes += value.length + (previous?.value.length ?? 0)
  return bytes
}

/** Settles as `promise` does, or rejects when the signal is aborted before. */
function abortable<T>(promise: Promise<T>, signal: AbortSignal): Promise<T> {
  return new Promise((resolve, reject) => {
    const release = onAbort(signal, () => reject(new Error('Aborted', { cause: signal.reason })))
    promise.then(resolve, reject).finally(release)
  })
}
