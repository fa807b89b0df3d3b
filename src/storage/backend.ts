/**
 * Backend: the store of the cluster's state. Three implementations (memory, sqlite, etcd) keep these promises, and
 * `backend.suite.ts` tests each of them. They are etcd's promises, because every Kubernetes component was written
 * against them:
 *
 * - The whole store has one revision counter. Each successful commit takes the next revision or a later one. Revisions
 * never repeat or decrease, even after a crash, a compaction or a restore.
 * - An acknowledged commit is durable: it survives SIGKILL and a power failure. A commit that failed with `timeout` or
 * `unavailable` may or may not have happened; the caller must read to find out.
 * - Reads are linearizable: a read sees every commit acknowledged before it began, and only durable commits.
 * - A range is consistent at one revision, even if it is read in several pages.
 * - A fork is an independent store: neither sees changes of the other.
 * - A watch delivers events in order of revision, each exactly once and without a gap, or ends with an error. One batch
 * contains all events of a revision.
 */

import type { Clock } from '#lib/clock.ts'
import type { Random } from '#lib/random.ts'

/** A point in the store's history. 0 means "before everything" and is the revision of an empty store. */
export type Revision = number

export interface KeyValue {
  readonly key: string
  /** Owned by the backend and shared between readers: never written to. */
  readonly value: Uint8Array
  /** The commit that created the key (anew, if it had been deleted). */
  readonly createRevision: Revision
  /** The commit that last changed it. */
  readonly modRevision: Revision
  /** 0 when the key does not expire. */
  readonly lease: LeaseId
}

export type LeaseId = number

/**
 * One guarded change. The value must not change until the commit has settled; then the buffer is the caller's again.
 * It is never detached.
 */
export interface Write {
  readonly key: string
  /** null deletes. */
  readonly value: Uint8Array | null
  /** The guard: the key's modRevision must be this. 0: the key must not exist. Absent: no guard. */
  readonly expected?: Revision
  /** The key is deleted when the lease ends. */
  readonly lease?: LeaseId
}

export type CommitResult =
  /** Durable. `previous` has, for each write in order, what was there before it. Deleting nothing takes no revision. */
  | { readonly ok: true; readonly revision: Revision; readonly previous: readonly (KeyValue | undefined)[] }
  /** A guard failed and nothing was written. `current` has, for each write in order, what is there now. */
  | { readonly ok: false; readonly revision: Revision; readonly current: readonly (KeyValue | undefined)[] }

export interface RangeOptions {
  /** First key, inclusive. Empty: from the first key of the store (keys themselves are never empty). */
  readonly start: string
  /** First key no longer wanted; absent: only `start` itself. `prefixEnd(prefix)` gives the end of a prefix. */
  readonly end?: string
  /** The picture at this revision instead of the latest: fails with `compacted` or `future-revision`. */
  readonly revision?: Revision
  /** At most so many; 0 or absent: all. */
  readonly limit?: number
  /** Only the count: no items, `more` is false. */
  readonly countOnly?: boolean
  /** Items with empty values: for comparing states without moving them. */
  readonly keysOnly?: boolean
  readonly signal?: AbortSignal
}

export interface RangeResult {
  /** In order of key (bytes). */
  readonly items: readonly KeyValue[]
  /** True if `limit` truncated the answer. */
  readonly more: boolean
  /** The number of keys in the range, whatever the limit. */
  readonly count: number
  /** The revision of the picture: the requested one, or the store's latest at the moment of reading. */
  readonly revision: Revision
}

export interface WatchOptions {
  readonly start: string
  /** As in RangeOptions. */
  readonly end?: string
  /**
   * The first revision to deliver, from 1; a future one is waited for. Absent: commits after the watch is established,
   * which the watch reports by beginning with an empty batch.
   */
  readonly from?: Revision
  /** The watch ends after this revision, which must have been committed. Absent: it goes on. */
  readonly through?: Revision
  readonly signal: AbortSignal
}

export interface StorageEvent {
  readonly type: 'put' | 'delete'
  readonly key: string
  /** The current value of the key; for a delete, the previous one. */
  readonly value: Uint8Array
  readonly createRevision: Revision
  /** The revision of this change, also for a delete. */
  readonly modRevision: Revision
  /** The value before this change; absent for a creation. */
  readonly previous?: KeyValue
  readonly lease: LeaseId
}

/** Everything the watch covers up to and including `revision` has been delivered; `events` may be empty (progress). */
export interface WatchBatch {
  readonly revision: Revision
  readonly events: readonly StorageEvent[]
}

export interface BackendHealth {
  readonly ok: boolean
  /** The problem and its remedy, for people. Empty when all is well. */
  readonly message: string
  readonly sizeBytes: number
  readonly sizeInUseBytes: number
  readonly revision: Revision
  readonly compactedRevision: Revision
}

export interface HealthOptions {
  /** Sizes may be 0: computing them may have to wait for a running copy of the store. */
  readonly withoutSizes?: boolean
}

export interface ForkOptions {
  /** The state at this revision instead of the latest: fails with `compacted` or `future-revision`. */
  readonly revision?: Revision
  /** The file of a sqlite store's fork, which must not exist. All other forks are in memory. */
  readonly file?: string
  /** The fork's own clock and random source; those of the store by default. */
  readonly clock?: Clock
  readonly random?: Random
}

/** Every call that takes a signal rejects with the signal's reason when it is aborted; a commit may have happened. */
export interface Backend {
  /** `memory`, `sqlite` or `etcd`. */
  readonly name: string
  /** A commit may wait for others over a network: callers that may lose interest pass a signal. */
  readonly isRemote?: boolean
  /**
   * Applies all writes at one revision or none. Several writes of one commit name different keys (else TypeError). A
   * failed guard is a result, not an error. Concurrent commits may share one disk flush, but one failing never takes
   * another with it.
   */
  commit(writes: readonly Write[], signal?: AbortSignal): Promise<CommitResult>
  range(options: RangeOptions): Promise<RangeResult>
  /** The latest revision, read linearizably: a cache that has applied it misses no acknowledged write. */
  currentRevision(signal?: AbortSignal): Promise<Revision>
  /** The same, if it is known without a request. Throws where that rejects. */
  knownRevision?(): Revision
  /**
   * The time of a commit in ms since 1970, to a second; of the commit before, if the revision changed nothing. Never
   * decreases with the revision. Undefined if it is not known: before the first commit, for commits from before times
   * were stored, and in etcd, which does not store times, for commits from before this process started.
   */
  timeOf(revision: Revision): number | undefined
  /**
   * The last revision that was committed in the second of `timeMs` or before. Undefined if that is before the first
   * commit whose time is known.
   */
  revisionAt(timeMs: number): Revision | undefined
  /**
   * Ends when the signal is aborted (normally) or fails with `compacted` when the next revision to deliver is no
   * longer kept (older than the compacted revision always fails; exactly at it either delivers in full or fails), with
   * `unavailable` when the backend could not keep it going, or with `closed`. Sends an empty batch from time to time
   * so that an idle watcher's position does not fall behind the compaction. A watcher that is slow to pull costs no
   * memory: it reads the history when it comes back.
   */
  watch(options: WatchOptions): AsyncIterable<WatchBatch>
  /**
   * Drops history before `revision`. The state at that revision stays readable. Idempotent; an older revision than the
   * compacted one has no effect and is no error. Fails with `future-revision`.
   */
  compact(revision: Revision): Promise<void>
  /**
   * A lease that ends `ttlMs` after now unless kept alive; its keys are then deleted as an ordinary commit. It may live
   * longer (coarse timers, a restart begins it anew), never shorter.
   */
  grantLease(ttlMs: number): Promise<LeaseId>
  keepAliveLease(lease: LeaseId): Promise<void>
  /** Ends a lease now: its keys are gone when this resolves. */
  revokeLease(lease: LeaseId): Promise<void>
  health(signal?: AbortSignal, options?: HealthOptions): Promise<BackendHealth>
  /** Writes a consistent copy of the whole store to `file` while traffic goes on; returns the revision it holds. */
  snapshot(file: string, signal?: AbortSignal): Promise<Revision>
  /**
   * Creates a store with the state of this one at the same revision. Its commits take the revisions after it, and watches
   * continue from there. Earlier history may be readable or compacted. Live leases start again; keys whose lease has ended
   * since `revision` stay.
   */
  fork(options?: ForkOptions): Promise<Backend>
  /** Commits in flight are finished first. Afterwards every call fails with `closed`. */
  close(): Promise<void>
}

/**
 * - `compacted`: the revision asked for is older than the kept history
 * - `future-revision`: the revision asked for has not happened yet
 * - `timeout`, `unavailable`: no answer; a commit may or may not have happened
 * - `no-space`: the disk or quota is full; nothing was written; reads and deletes go on
 * - `corrupt`: stored bytes are not what was written; the message says where
 * - `too-large`: the commit exceeds the backend's limit; nothing was written
 * - `lease-not-found`: the lease has ended or never was
 * - `closed`: the backend was closed
 */
export type StorageErrorCode =
  | 'compacted'
  | 'future-revision'
  | 'timeout'
  | 'unavailable'
  | 'no-space'
  | 'corrupt'
  | 'too-large'
  | 'lease-not-found'
  | 'closed'

export class StorageError extends Error {
  readonly code: StorageErrorCode
  /** For `compacted`: the oldest revision still readable. */
  readonly compactedRevision: Revision | undefined

  constructor(
    code: StorageErrorCode,
    message: string,
    options?: ErrorOptions & { readonly compactedRevision?: Revision },
  ) {
    super(message, options)
    this.name = 'StorageError'
    this.code = code
    this.compactedRevision = options?.compactedRevision
  }
}

/** The first key after every key that starts with `prefix`. Keys are compared as UTF-8 bytes; ours are ASCII. */
export function prefixEnd(prefix: string): string {
  for (let last = prefix.length - 1; last >= 0; last--) {
    const code = prefix.charCodeAt(last)
    if (code < 0x7f) return prefix.slice(0, last) + String.fromCharCode(code + 1)
  }
  return '\u{10ffff}'
}
