/** Implements the Backend contract on an etcd cluster. */
import { KV, Lease, type StatusResponse, type TxnResponse } from '#apis/wire/etcd.ts'
import type { Clock, Timer } from '#lib/clock.ts'
import type { Random } from '#lib/random.ts'

import { createAutoCompaction, HISTORY_WINDOW_MS } from '../auto-compaction.ts'
import {
  prefixEnd,
  StorageError,
  type Backend,
  type BackendHealth,
  type CommitResult,
  type ForkOptions,
  type LeaseId,
  type RangeOptions,
  type RangeResult,
  type Revision,
  type WatchBatch,
  type WatchOptions,
  type Write,
} from '../backend.ts'
import { compactedError } from '../event-feed.ts'
import { checkTtl, leaseNotFound } from '../leases.ts'
import { createMemoryBackend } from '../memory.ts'
import { checkWrites } from '../write-check.ts'
import { ByteBudget } from './byte-budget.ts'
import { EtcdClient, type EtcdClientOptions } from './client.ts'
import { readRange } from './range.ts'
import { saveSnapshot } from './snapshot.ts'
import { planTxn, readTxn } from './txn.ts'
import { askCompactedRevision } from './watch-stream.ts'
import { Watcher } from './watcher.ts'

export interface EtcdBackendOptions extends EtcdClientOptions {
  /** The history window; default 5 minutes, as upstream's API server. Infinity: compact only by hand. */
  readonly historyMs?: number
  readonly progressEveryMs?: number
}

/** The number of restarts of a paged range that is compacted while it is read. */
const PICTURE_ATTEMPTS = 3
const HEALTH_MS = 2000
/** Bytes of concurrent writes: ten of the largest, thousands of the usual ones. */
const IN_FLIGHT_BYTES = 16 << 20
/** etcd's own ids have 63 bits; a number has 53. Random, so that an old id never means another lease. */
const LEASE_ID_BOUND = 2 ** 48
const NO_KEY = '\0'

export class EtcdBackend implements Backend {
  readonly name = 'etcd'
  readonly isRemote = true
  readonly #clock: Clock
  readonly #random: Random
  readonly #client: EtcdClient
  readonly #watcher: Watcher
  readonly #compaction: Timer | undefined
  readonly #budget = new ByteBudget(IN_FLIGHT_BYTES)
  readonly #commits = new Set<Promise<unknown>>()
  /** The oldest revision, as far as known: it can only have grown since. */
  #compacted: Revision = 0
  #closing: Promise<void> | undefined

  constructor(options: EtcdBackendOptions) {
    const { clock, random, log, historyMs = HISTORY_WINDOW_MS, progressEveryMs } = options
    this.#clock = clock
    this.#random = random
    this.#client = new EtcdClient(options)
    this.#watcher = new Watcher({
      client: this.#client,
      clock,
      random,
      log,
      currentRevision: (signal) => this.currentRevision(signal),
      ...(progressEveryMs !== undefined && { progressEveryMs }),
    })
    if (historyMs < Infinity) {
      // A compaction that fails, or comes after another server's, is made up for by the next one.
      const compact = (revision: Revision): void => void this.compact(revision).catch(() => undefined)
      const revision = (): Revision => this.#client.seen
      this.#compaction = createAutoCompaction({ clock, windowMs: historyMs, revision, compact })
    }
  }

  async commit(writes: readonly Write[], signal?: AbortSignal): Promise<CommitResult> {
    this.#check(signal)
    // The cluster decides how much it accepts in one request.
    checkWrites(writes, { requestBytes: Infinity })
    if (writes.length === 0) return { ok: true, revision: await this.currentRevision(signal), previous: [] }
    const send = (): Promise<TxnResponse> => this.#client.call(KV.txn, planTxn(writes), { kind: 'write', signal })
    const answer = this.#budget.run(sizeOf(writes), signal, send)
    this.#commits.add(answer)
    try {
      return readTxn(await answer)
    } finally {
      this.#commits.delete(answer)
    }
  }

  async range(options: RangeOptions): Promise<RangeResult> {
    this.#check(options.signal)
    for (let attempt = 1; ; attempt++) {
      try {
        return await readRange(this.#client, options)
      } catch (error) {
        const isCompacted = error instanceof StorageError && error.code === 'compacted'
        if (!isCompacted) throw this.#explain(error)
        if (options.revision === undefined && attempt < PICTURE_ATTEMPTS) continue
        throw await this.#compactedError(options.revision ?? 0, error)
      }
    }
  }

  async currentRevision(signal?: AbortSignal): Promise<Revision> {
    this.#check(signal)
    const answer = await this.#call(
      this.#client.call(KV.range, { key: NO_KEY, countOnly: true }, { kind: 'read', signal }),
    )
    return Number(answer.header?.revision ?? 0)
  }

  timeOf(revision: Revision): number | undefined {
    return this.#client.times.timeOf(revision)
  }

  revisionAt(timeMs: number): Revision | undefined {
    return this.#client.times.revisionAt(timeMs, this.#client.seen)
  }

  watch(options: WatchOptions): AsyncIterable<WatchBatch> {
    const { through } = options
    return through === undefined ? this.#watcher.watch(options) : untilRevision(this.#watcher.watch(options), through)
  }

  async compact(revision: Revision): Promise<void> {
    this.#check()
    try {
      await this.#client.call(KV.compact, { revision }, { kind: 'repeatable' })
      this.#compacted = Math.max(this.#compacted, revision)
    } catch (error) {
      const isDone = error instanceof StorageError && error.code === 'compacted'
      if (!isDone) throw this.#explain(error)
    }
    this.#client.times.forget(revision)
    this.#watcher.forget(revision)
  }

  async grantLease(ttlMs: number): Promise<LeaseId> {
    this.#check()
    checkTtl(ttlMs)
    const ttl = Math.ceil(ttlMs / 1000)
    const id = this.#random.int(LEASE_ID_BOUND) + 1
    let isRepeated = false
    const onRepeat = (): void => void (isRepeated = true)
    try {
      await this.#client.call(Lease.leaseGrant, { ttl, id }, { kind: 'repeatable', onRepeat })
    } catch (error) {
      const isThere = error instanceof StorageError && /lease already exists/.test(error.message)
      // The lease id is random, so the first attempt must have created the lease.
      if (!(isRepeated && isThere)) throw this.#explain(error)
    }
    return id
  }

  async keepAliveLease(lease: LeaseId): Promise<void> {
    this.#check()
    // A stream with one request and one response is an ordinary call.
    const { ttl } = await this.#call(this.#client.call(Lease.leaseKeepAlive, { id: lease }, { kind: 'repeatable' }))
    if (Number(ttl) <= 0) throw leaseNotFound(lease)
  }

  async revokeLease(lease: LeaseId): Promise<void> {
    this.#check()
    let isRepeated = false
    const onRepeat = (): void => void (isRepeated = true)
    try {
      await this.#client.call(Lease.leaseRevoke, { id: lease }, { kind: 'repeatable', onRepeat })
    } catch (error) {
      const isGone = error instanceof StorageError && error.code === 'lease-not-found'
      // The first attempt has ended it.
      if (!(isRepeated && isGone)) throw this.#explain(error)
    }
  }

  async health(signal?: AbortSignal): Promise<BackendHealth> {
    this.#check(signal)
    const [trouble, statuses] = await Promise.all([this.#trouble(signal), this.#client.statuses(HEALTH_MS)])
    if (trouble === undefined) await this.#findCompacted(signal)
    signal?.throwIfAborted()
    const answers = statuses.filter((status) => status !== undefined)
    const message = trouble ?? describeMembers(statuses)
    return {
      ok: trouble === undefined && !answers.some(hasAlarm),
      message,
      sizeBytes: Math.max(0, ...answers.map(({ dbSize }) => Number(dbSize))),
      sizeInUseBytes: Math.max(0, ...answers.map(({ dbSizeInUse }) => Number(dbSizeInUse))),
      revision: this.#client.seen,
      compactedRevision: this.#compacted,
    }
  }

  async snapshot(file: string, signal?: AbortSignal): Promise<Revision> {
    this.#check(signal)
    return this.#call(saveSnapshot(this.#client, file, signal))
  }

  async fork({ revision, clock = this.#clock, random = this.#random }: ForkOptions = {}): Promise<Backend> {
    const all = { start: '', end: prefixEnd('') }
    const state = await this.range({ ...all, ...(revision !== undefined && { revision }) })
    const leases = await Promise.all([...new Set(state.items.map(({ lease }) => lease))].map((id) => this.#ttlOf(id)))
    const living = leases.filter(([, ttlMs]) => ttlMs > 0)
    return createMemoryBackend(
      { clock, random },
      {
        ...state,
        leases: living,
        times: this.#client.times.until(state.revision),
      },
    )
  }

  close(): Promise<void> {
    this.#closing ??= this.#close()
    return this.#closing
  }

  async #close(): Promise<void> {
    this.#compaction?.cancel()
    await Promise.allSettled(this.#commits)
    this.#watcher.close(closedError())
    this.#client.close()
  }

  /** With 0 for an expired one. */
  async #ttlOf(id: LeaseId): Promise<readonly [LeaseId, ttlMs: number]> {
    if (id === 0) return [id, 0]
    const times = await this.#call(this.#client.call(Lease.leaseTimeToLive, { id }, { kind: 'read' }))
    return [id, Number(times.ttl) > 0 ? Number(times.grantedTtl) * 1000 : 0]
  }

  #check(signal?: AbortSignal): void {
    if (this.#closing !== undefined) throw closedError()
    signal?.throwIfAborted()
  }

  async #call<T>(task: Promise<T>): Promise<T> {
    try {
      return await task
    } catch (error) {
      throw this.#explain(error)
    }
  }

  /** Calls that end because the backend was closed report that. */
  #explain(error: unknown): unknown {
    return this.#closing === undefined ? error : closedError()
  }

  async #compactedError(revision: Revision, cause: unknown): Promise<StorageError> {
    const tools = { client: this.#client, clock: this.#clock }
    this.#compacted = Math.max(this.#compacted, (await askCompactedRevision(tools, revision)) ?? 0)
    if (this.#compacted > revision) return compactedError(revision, this.#compacted)
    return cause as StorageError
  }

  /** The errors that keep etcd from answering a linearizable read. */
  async #trouble(signal: AbortSignal | undefined): Promise<string | undefined> {
    try {
      await this.currentRevision(signal)
      return undefined
    } catch (error) {
      if (signal?.aborted || this.#closing !== undefined || !(error instanceof StorageError)) throw error
      return error.message
    }
  }

  /** Other servers compact too: the oldest revision is valid as long as it can be read. */
  async #findCompacted(signal: AbortSignal | undefined): Promise<void> {
    const revision = Math.max(1, this.#compacted)
    try {
      await this.#client.call(KV.range, { key: NO_KEY, revision, countOnly: true }, { kind: 'read', signal })
    } catch (error) {
      if (!(error instanceof StorageError) || error.code !== 'compacted') throw error
      await this.#compactedError(revision, error)
    }
  }
}

/** The last revision is known to be complete with the next progress of the watch. */
async function* untilRevision(batches: AsyncIterable<WatchBatch>, through: Revision): AsyncGenerator<WatchBatch> {
  for await (const { revision, events } of batches) {
    const wanted = events.filter(({ modRevision }) => modRevision <= through)
    if (wanted.length > 0) yield { revision: Math.min(revision, through), events: wanted }
    if (revision >= through) return
  }
}

function sizeOf(writes: readonly Write[]): number {
  return writes.reduce((sum, { key, value }) => sum + key.length + (value?.length ?? 0), 0)
}

function hasAlarm({ errors }: StatusResponse): boolean {
  return errors.some((text) => text.includes('alarm:'))
}

function describeMembers(statuses: readonly (StatusResponse | undefined)[]): string {
  const parts: string[] = []
  const silent = statuses.filter((status) => status === undefined).length
  if (silent > 0) parts.push(`${silent} of ${statuses.length} etcd members do not answer; see to them`)
  const errors = new Set(statuses.flatMap((status) => status?.errors ?? []))
  for (const text of errors) {
    const advice = text.includes('NOSPACE')
      ? ': writes are refused; compact, defragment one member after the other, then run `etcdctl alarm disarm`'
      : ''
    parts.push(`etcd reports "${text.trim()}"${advice}`)
  }
  return parts.join('; ')
}

function closedError(): StorageError {
  return new StorageError('closed', 'The store was closed')
}
