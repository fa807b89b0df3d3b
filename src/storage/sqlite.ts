/**
 * The sqlite backend, the default: one file and no server. Worker threads write and read; this file sends them calls
 * and keeps recent events and lease timers.
 */
import { every, type Clock, type Timer } from '#lib/clock.ts'
import type { Random } from '#lib/random.ts'

import { createAutoCompaction, HISTORY_WINDOW_MS } from './auto-compaction.ts'
import {
  prefixEnd,
  StorageError,
  type Backend,
  type BackendHealth,
  type HealthOptions,
  type CommitResult,
  type ForkOptions,
  type KeyValue,
  type LeaseId,
  type RangeOptions,
  type RangeResult,
  type Revision,
  type StorageEvent,
  type WatchBatch,
  type WatchOptions,
  type Write,
} from './backend.ts'
import { CommitTimes } from './commit-times.ts'
import { EventFeed, type HistoryRequest } from './event-feed.ts'
import { checkTtl, LeaseTimers } from './leases.ts'
import { createMemoryBackend } from './memory.ts'
import { packWrites, unpackItem, type Part, type Result, type StoreState } from './sqlite/messages.ts'
import { unpackEvents, unpackRange } from './sqlite/read-calls.ts'
import { createScrub } from './sqlite/scrub.ts'
import { openThreads, type Threads } from './sqlite/threads.ts'
import { checkWrites, copyingInTurn } from './write-check.ts'

export interface SqliteOptions {
  readonly clock: Clock
  readonly random: Random
  /** Receives messages for operators. */
  readonly log?: (message: string) => void
  /** The history window; default 5 minutes. Infinity: never compacts by itself. */
  readonly historyMs?: number
  readonly progressEveryMs?: number
  /** The maximum size; default: the size of the disk. */
  readonly quotaBytes?: number
  /** Reserved disk space so that deletes work on a full disk; default 8 MiB. */
  readonly ballastBytes?: number
}

const BALLAST_BYTES = 8 << 20
/** A full disk with free space again is noticed after at most this time. */
const UPKEEP_EVERY_MS = 1000
/** The retry interval for a lease whose keys could not be deleted (for example on a full disk). */
const REVOKE_AGAIN_MS = 1000

/**
 * Opens the store in `file`, which is created if missing. Fails with `unavailable` if another process has it open, and
 * with `corrupt` if it is damaged.
 */
export async function openSqliteBackend(file: string, options: SqliteOptions): Promise<Backend> {
  const { clock, log = () => undefined, quotaBytes = Infinity, ballastBytes = BALLAST_BYTES } = options
  const threads = await openThreads({ role: 'writer', file, quotaBytes, ballastBytes }, { clock, log })
  return new SqliteStore(threads, await threads.opened, options)
}

class SqliteStore implements Backend {
  readonly name = 'sqlite'
  readonly #threads: Threads
  readonly #clock: Clock
  readonly #options: SqliteOptions
  readonly #feed: EventFeed
  readonly #leases: LeaseTimers
  readonly #timers = new Set<Timer>()
  /** Values are kept until the feed drops their events, in the order of the commits. */
  readonly #copy = copyingInTurn()
  readonly #times: CommitTimes
  #compacted: Revision
  /** The newest revision that a read has returned: ahead of the feed if a read saw a commit before its result arrived. */
  #shown: Revision
  #closing: Promise<void> | undefined

  constructor(threads: Threads, state: StoreState, options: SqliteOptions) {
    const { clock, historyMs = HISTORY_WINDOW_MS, progressEveryMs } = options
    this.#threads = threads
    this.#clock = clock
    this.#options = options
    this.#compacted = state.compactedRevision
    this.#shown = state.revision
    this.#times = new CommitTimes(state.times)
    this.#feed = new EventFeed({
      clock,
      revision: state.revision,
      ...(progressEveryMs !== undefined && { progressEveryMs }),
      history: (request) => this.#history(request),
    })
    threads.onDeath((error) => this.#feed.close(error))
    this.#leases = new LeaseTimers(clock, (lease) => this.#expire(lease))
    for (const [lease, ttlMs] of state.leases) this.#leases.add(lease, ttlMs)
    this.#timers.add(every(clock, UPKEEP_EVERY_MS, () => threads.tidy()))
    this.#timers.add(createScrub(clock, threads.reads, state.isChecked))
    if (historyMs < Infinity) {
      // A failed compaction is made up for by the next one.
      const compact = (revision: Revision): void => void this.compact(revision).catch(() => undefined)
      const revision = (): Revision => this.#feed.revision
      this.#timers.add(createAutoCompaction({ clock, windowMs: historyMs, revision, compact }))
    }
  }

  async commit(writes: readonly Write[], signal?: AbortSignal): Promise<CommitResult> {
    this.#check(signal)
    checkWrites(writes)
    const own = writes.map((write) => (write.value === null ? write : { ...write, value: this.#copy(write.value) }))
    const publish = (result: Result, atMs: number): CommitResult => this.#publishCommit(own, result, atMs)
    return abortable(this.#threads.writes.submit(['commit', packWrites(own)], publish), signal)
  }

  async range(options: RangeOptions): Promise<RangeResult> {
    this.#check(options.signal)
    const { start, end = `${start}\0`, revision, limit = 0, countOnly = false, keysOnly = false, signal } = options
    const items: KeyValue[] = []
    const part = (part: Part): void => unpackRange(part, items)
    const call = { start, end, revision, limit, countOnly, keysOnly }
    const answer = await this.#threads.reads.call('range', call, { signal, part })
    this.#shown = Math.max(this.#shown, answer.revision)
    return { items, ...answer }
  }

  async currentRevision(signal?: AbortSignal): Promise<Revision> {
    this.#check(signal)
    return this.knownRevision()
  }

  knownRevision(): Revision {
    this.#check()
    this.#threads.checkAlive()
    return Math.max(this.#shown, this.#feed.revision)
  }

  timeOf(revision: Revision): number | undefined {
    return this.#times.timeOf(revision)
  }

  revisionAt(timeMs: number): Revision | undefined {
    return this.#times.revisionAt(timeMs, this.#feed.revision)
  }

  watch(options: WatchOptions): AsyncIterable<WatchBatch> {
    return this.#feed.watch(options)
  }

  async compact(revision: Revision): Promise<void> {
    this.#check()
    await this.#threads.writes.submit(['compact', revision], () => {
      this.#compacted = Math.max(this.#compacted, revision)
      this.#times.forget(this.#compacted)
      this.#feed.forget(this.#compacted)
    })
  }

  async grantLease(ttlMs: number): Promise<LeaseId> {
    this.#check()
    checkTtl(ttlMs)
    const lease = this.#leases.draw(this.#options.random)
    await this.#threads.writes.submit(['grant', lease, Math.ceil(ttlMs)], () => this.#leases.add(lease, ttlMs))
    return lease
  }

  async keepAliveLease(lease: LeaseId): Promise<void> {
    this.#check()
    this.#threads.checkAlive()
    this.#leases.renew(lease)
  }

  async revokeLease(lease: LeaseId): Promise<void> {
    this.#check()
    this.#leases.remove(lease)
    await this.#revoke(lease)
  }

  async health(signal?: AbortSignal, { withoutSizes = false }: HealthOptions = {}): Promise<BackendHealth> {
    this.#check(signal)
    const { trouble } = this.#threads
    const unknown = { sizeBytes: 0, sizeInUseBytes: 0 }
    const pendingSizes = withoutSizes ? unknown : this.#threads.reads.call('sizes', undefined, { signal })
    const sizes = await Promise.resolve(pendingSizes).catch(() => unknown)
    signal?.throwIfAborted()
    return {
      ok: trouble === undefined,
      message: trouble?.message ?? '',
      ...sizes,
      revision: this.#feed.revision,
      compactedRevision: this.#compacted,
    }
  }

  async snapshot(file: string, signal?: AbortSignal): Promise<Revision> {
    this.#check(signal)
    return this.#threads.reads.call('snapshot', file, { signal })
  }

  async fork({ revision, file, ...own }: ForkOptions = {}): Promise<Backend> {
    this.#check()
    const options = { ...this.#options, ...own }
    if (file !== undefined) {
      await this.#threads.reads.call('fork', { target: file, revision })
      return openSqliteBackend(file, options)
    }
    const leases = [...this.#leases.entries()]
    const state = await this.range({ start: '', end: prefixEnd(''), ...(revision !== undefined && { revision }) })
    return createMemoryBackend(options, { ...state, leases, times: this.#times.until(state.revision) })
  }

  close(): Promise<void> {
    this.#closing ??= this.#close()
    return this.#closing
  }

  async #close(): Promise<void> {
    for (const timer of this.#timers) timer.cancel()
    this.#leases.close()
    const closed = closedError()
    await this.#threads.close(closed)
    this.#feed.close(closed)
  }

  #check(signal?: AbortSignal): void {
    if (this.#closing !== undefined) throw closedError()
    signal?.throwIfAborted()
  }

  #publishCommit(writes: readonly Write[], result: Result, atMs: number): CommitResult {
    const [, ok, revision, found] = result as Extract<Result, readonly ['commit', ...unknown[]]>
    const items = writes.map(({ key }, at) => unpackItem(found, at, key))
    if (!ok) return { ok, revision, current: items }
    // A delete without effect takes no revision: the reported one belongs to an older commit.
    if (revision > this.#feed.revision) {
      const events = writes.flatMap((write, at) => makeEvents(write, revision, items[at]))
      this.#publish({ revision, events }, atMs)
    }
    return { ok, revision, previous: items }
  }

  #expire(lease: LeaseId): void {
    this.#revoke(lease).catch(() => {
      if (this.#closing !== undefined || this.#threads.isDead) return
      const again = (): void => {
        this.#timers.delete(timer)
        this.#expire(lease)
      }
      const timer = this.#clock.after(REVOKE_AGAIN_MS, again, { background: true })
      this.#timers.add(timer)
    })
  }

  async #revoke(lease: LeaseId): Promise<void> {
    await this.#threads.writes.submit(['revoke', lease], (result, atMs) => {
      const [, deletions] = result as Extract<Result, readonly ['revoked', ...unknown[]]>
      for (const [revision, part] of Map.groupBy(deletions, ([revision]) => revision)) {
        const events = part.flatMap(([, item]) => makeEvents({ key: item.key, value: null }, revision, item))
        this.#publish({ revision, events }, atMs)
      }
    })
  }

  #publish(batch: WatchBatch, atMs: number): void {
    this.#times.note(batch.revision, atMs)
    this.#feed.publish(batch)
  }

  async #history({ start, end = `${start}\0`, from, through, signal }: HistoryRequest): Promise<WatchBatch> {
    const events: StorageEvent[] = []
    const part = (part: Part): void => unpackEvents(part, events)
    const { revision } = await this.#threads.reads.call('history', { start, end, from, through }, { signal, part })
    return { revision, events }
  }
}

/** The event of one write; none if it deleted nothing. */
function makeEvents(write: Write, revision: Revision, previous: KeyValue | undefined): StorageEvent[] {
  const { key, value, lease = 0 } = write
  if (previous === undefined) {
    if (value === null) return []
    return [{ type: 'put', key, createRevision: revision, modRevision: revision, value, lease }]
  }
  const { createRevision } = previous
  if (value !== null) return [{ type: 'put', key, createRevision, modRevision: revision, value, lease, previous }]
  const gone = { value: previous.value, lease: previous.lease }
  return [{ type: 'delete', key, createRevision, modRevision: revision, ...gone, previous }]
}

/** Not async without a signal, which saves a promise for every commit. */
function abortable<T>(promise: Promise<T>, signal: AbortSignal | undefined): Promise<T> {
  if (signal === undefined) return promise
  return new Promise((resolve, reject) => {
    const abort = (): void => {
      // oxlint-disable-next-line typescript/prefer-promise-reject-errors -- the contract: the signal's own reason
      reject(signal.reason)
    }
    signal.addEventListener('abort', abort, { once: true })
    promise.then(resolve, reject).finally(() => signal.removeEventListener('abort', abort))
  })
}

function closedError(): StorageError {
  return new StorageError('closed', 'The store was closed')
}
