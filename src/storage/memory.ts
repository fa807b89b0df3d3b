/**
 * The memory backend, for tests and temporary clusters. The state is an immutable tree, so past states and forks share
 * almost all nodes.
 */
import { readFile } from 'node:fs/promises'
import { deserialize, serialize } from 'node:v8'

import type { Clock, Timer } from '#lib/clock.ts'
import { partitionPoint } from '#lib/collections/partition-point.ts'
import { writeFileAtomically } from '#lib/files/atomic-file.ts'
import type { Random } from '#lib/random.ts'

import { createAutoCompaction, HISTORY_WINDOW_MS } from './auto-compaction.ts'
import {
  StorageError,
  type Backend,
  type BackendHealth,
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
import { CommitTimes, type CommitTime } from './commit-times.ts'
import { compactedError, EventFeed, futureRevisionError } from './event-feed.ts'
import { checkTtl, leaseNotFound, LeaseTimers } from './leases.ts'
import { OrderedTree } from './ordered-tree.ts'
import { checkWrites, exactCopy } from './write-check.ts'

export interface MemoryOptions {
  readonly clock: Clock
  readonly random: Random
  /** The history window; default 5 minutes. Infinity: never compacts by itself. */
  readonly historyMs?: number
  readonly progressEveryMs?: number
}

/** The state from `revision` on until the next picture. */
interface Picture {
  readonly revision: Revision
  readonly tree: OrderedTree<KeyValue>
  /** The changes since the previous picture. */
  readonly events: readonly StorageEvent[]
  readonly valueBytes: number
}

interface Content {
  /** Never empty, ascending; the first one covers `compactedRevision`. */
  readonly pictures: readonly Picture[]
  readonly compactedRevision: Revision
  /** The oldest revision whose changes are known: a watch can start here. */
  readonly eventsFrom: Revision
  readonly leases: readonly (readonly [LeaseId, number])[]
  readonly times: readonly CommitTime[]
  /** The keys of each lease, if known. */
  readonly keysOfLease?: ReadonlyMap<LeaseId, ReadonlySet<string>>
}

export interface MemoryState {
  readonly revision: Revision
  /** In order of key. */
  readonly items: readonly KeyValue[]
  /** Each with its time to live, which begins anew. */
  readonly leases: readonly (readonly [LeaseId, number])[]
  /** Default: not known. */
  readonly times?: readonly CommitTime[]
}

const NOTHING: MemoryState = { revision: 0, items: [], leases: [] }

/** A store with this state and no history. */
export function createMemoryBackend(options: MemoryOptions, state: MemoryState = NOTHING): Backend {
  const { revision, items, leases, times = [] } = state
  const tree = OrderedTree.fromSorted(items, ({ key }) => key)
  const valueBytes = items.reduce((sum, { value }) => sum + value.length, 0)
  const pictures = [{ revision, tree, events: [], valueBytes }]
  return new MemoryStore(options, { pictures, compactedRevision: revision, eventsFrom: revision + 1, leases, times })
}

const NO_VALUE = new Uint8Array()

class MemoryStore implements Backend {
  readonly name = 'memory'
  readonly #options: MemoryOptions
  readonly #feed: EventFeed
  readonly #leases: LeaseTimers
  readonly #keysOfLease = new Map<LeaseId, Set<string>>()
  readonly #times: CommitTimes
  readonly #compaction: Timer | undefined
  #pictures: Picture[]
  #compacted: Revision
  #eventsFrom: Revision
  #closed = false

  constructor(options: MemoryOptions, content: Content) {
    const { clock, historyMs = HISTORY_WINDOW_MS, progressEveryMs } = options
    this.#options = options
    this.#pictures = [...content.pictures]
    this.#compacted = content.compactedRevision
    this.#eventsFrom = content.eventsFrom
    this.#times = new CommitTimes(content.times)
    this.#feed = new EventFeed({
      clock,
      revision: content.eventsFrom - 1,
      published: content.pictures,
      ...(progressEveryMs !== undefined && { progressEveryMs }),
      keepBytes: Infinity,
      history: async ({ from }) => {
        throw compactedError(from, this.#compacted)
      },
    })
    this.#leases = new LeaseTimers(clock, (lease) => this.#endLease(lease))
    for (const [lease, ttlMs] of content.leases) this.#addLease(lease, ttlMs)
    if (content.keysOfLease !== undefined) {
      for (const [lease, keys] of content.keysOfLease) this.#keysOfLease.set(lease, new Set(keys))
    } else if (content.leases.length > 0) {
      this.#latest.tree.scan('', '\u{10ffff}', (item) => this.#attach(item.lease, item.key))
    }
    if (historyMs < Infinity) {
      const compact = (revision: Revision): void => this.#compact(revision)
      this.#compaction = createAutoCompaction({
        clock,
        windowMs: historyMs,
        revision: () => this.#latest.revision,
        compact,
      })
    }
  }

  get #latest(): Picture {
    return this.#pictures.at(-1) as Picture
  }

  async commit(writes: readonly Write[], signal?: AbortSignal): Promise<CommitResult> {
    this.#check(signal)
    checkWrites(writes)
    for (const { lease } of writes) if (lease && !this.#leases.has(lease)) throw leaseNotFound(lease)
    const { revision, tree } = this.#latest
    const before = writes.map(({ key }) => tree.get(key))
    const fits = ({ expected }: Write, at: number): boolean =>
      expected === undefined || expected === (before[at]?.modRevision ?? 0)
    if (!writes.every(fits)) return { ok: false, revision, current: before }
    return { ok: true, revision: this.#apply(writes), previous: before }
  }

  async range(options: RangeOptions): Promise<RangeResult> {
    this.#check(options.signal)
    const { revision, tree } = this.#pictureAt(options.revision)
    const { start, end = `${start}\0`, limit = 0, countOnly = false, keysOnly = false } = options
    const count = tree.count(start, end)
    const items: KeyValue[] = []
    const wanted = limit > 0 ? limit : Infinity
    const shown = (item: KeyValue): KeyValue => (keysOnly ? { ...item, value: NO_VALUE } : item)
    if (!countOnly && count > 0) tree.scan(start, end, (item) => items.push(shown(item)) < wanted)
    return { items, more: !countOnly && items.length < count, count, revision }
  }

  async currentRevision(signal?: AbortSignal): Promise<Revision> {
    this.#check(signal)
    return this.knownRevision()
  }

  knownRevision(): Revision {
    this.#check()
    return this.#latest.revision
  }

  timeOf(revision: Revision): number | undefined {
    return this.#times.timeOf(revision)
  }

  revisionAt(timeMs: number): Revision | undefined {
    return this.#times.revisionAt(timeMs, this.#latest.revision)
  }

  watch(options: WatchOptions): AsyncIterable<WatchBatch> {
    return this.#feed.watch(options)
  }

  async compact(revision: Revision): Promise<void> {
    this.#check()
    if (revision > this.#latest.revision) throw futureRevisionError(revision, this.#latest.revision)
    this.#compact(revision)
  }

  async grantLease(ttlMs: number): Promise<LeaseId> {
    this.#check()
    checkTtl(ttlMs)
    const lease = this.#leases.draw(this.#options.random)
    this.#addLease(lease, ttlMs)
    return lease
  }

  async keepAliveLease(lease: LeaseId): Promise<void> {
    this.#check()
    this.#leases.renew(lease)
  }

  async revokeLease(lease: LeaseId): Promise<void> {
    this.#check()
    this.#leases.remove(lease)
    this.#endLease(lease)
  }

  async health(signal?: AbortSignal): Promise<BackendHealth> {
    this.#check(signal)
    return {
      ok: true,
      message: '',
      sizeBytes: this.#latest.valueBytes,
      sizeInUseBytes: this.#latest.valueBytes,
      revision: this.#latest.revision,
      compactedRevision: this.#compacted,
    }
  }

  async snapshot(file: string, signal?: AbortSignal): Promise<Revision> {
    this.#check(signal)
    const { revision, tree } = this.#latest
    const items: KeyValue[] = []
    tree.scan('', '\u{10ffff}', (item) => void items.push(item))
    const state = {
      format: SNAPSHOT_FORMAT,
      revision,
      items,
      leases: [...this.#leases.entries()],
      times: this.#times.until(revision),
    }
    await writeFileAtomically(file, serialize(state), { mode: 0o600 })
    return revision
  }

  async close(): Promise<void> {
    if (this.#closed) return
    this.#closed = true
    this.#compaction?.cancel()
    this.#leases.close()
    this.#feed.close(closedError())
  }

  async fork({ revision = this.#latest.revision, ...options }: ForkOptions = {}): Promise<Backend> {
    this.#check()
    const last = this.#pictureAt(revision)
    const before = this.#pictures.slice(0, this.#pictureIndex(revision) + 1)
    return new MemoryStore(
      { ...this.#options, ...options },
      {
        // A revision without changes still counts.
        pictures: before.at(-1)?.revision === revision ? before : [...before, { ...last, events: [] }],
        compactedRevision: this.#compacted,
        eventsFrom: this.#eventsFrom,
        leases: [...this.#leases.entries()],
        times: this.#times.until(revision),
        ...(revision === this.#latest.revision && { keysOfLease: this.#keysOfLease }),
      },
    )
  }

  #check(signal?: AbortSignal): void {
    if (this.#closed) throw closedError()
    signal?.throwIfAborted()
  }

  /** Takes the next revision, unless there is nothing to change. */
  #apply(writes: readonly Write[]): Revision {
    const latest = this.#latest
    const revision = latest.revision + 1
    let { tree, valueBytes } = latest
    const events: StorageEvent[] = []
    for (const write of writes) {
      const previous = tree.get(write.key)
      if (write.value === null && previous === undefined) continue
      const event = makeEvent(write, revision, previous)
      events.push(event)
      this.#detach(previous)
      valueBytes -= previous?.value.length ?? 0
      if (event.type === 'delete') {
        tree = tree.delete(write.key)
        continue
      }
      const { key, value, createRevision, modRevision, lease } = event
      tree = tree.set(key, { key, value, createRevision, modRevision, lease })
      this.#attach(lease, key)
      valueBytes += value.length
    }
    if (events.length === 0) return latest.revision
    const picture = { revision, tree, events, valueBytes }
    this.#pictures.push(picture)
    this.#times.note(revision, this.#options.clock.now())
    this.#feed.publish(picture)
    return revision
  }

  #pictureAt(revision: Revision | undefined): Picture {
    const latest = this.#latest
    if (revision === undefined) return latest
    if (revision > latest.revision) throw futureRevisionError(revision, latest.revision)
    if (revision < this.#compacted) throw compactedError(revision, this.#compacted)
    return { ...(this.#pictures[this.#pictureIndex(revision)] as Picture), revision }
  }

  /** The last picture that is not after `revision`. */
  #pictureIndex(revision: Revision): number {
    const pictures = this.#pictures
    return partitionPoint(1, pictures.length, (index) => (pictures[index] as Picture).revision <= revision) - 1
  }

  #compact(revision: Revision): void {
    if (revision <= this.#compacted) return
    this.#compacted = revision
    this.#eventsFrom = Math.max(this.#eventsFrom, revision)
    this.#pictures = this.#pictures.slice(this.#pictureIndex(revision))
    this.#times.forget(revision)
    this.#feed.forget(revision)
  }

  #addLease(lease: LeaseId, ttlMs: number): void {
    this.#leases.add(lease, ttlMs)
    this.#keysOfLease.set(lease, new Set())
  }

  #attach(lease: LeaseId, key: string): void {
    this.#keysOfLease.get(lease)?.add(key)
  }

  #detach(item: KeyValue | undefined): void {
    if (item !== undefined) this.#keysOfLease.get(item.lease)?.delete(item.key)
  }

  #endLease(lease: LeaseId): void {
    const keys = this.#keysOfLease.get(lease) ?? []
    this.#keysOfLease.delete(lease)
    this.#apply([...keys].map((key) => ({ key, value: null })))
  }
}

function makeEvent(write: Write, revision: Revision, previous: KeyValue | undefined): StorageEvent {
  const { key, value, lease = 0 } = write
  const createRevision = previous?.createRevision ?? revision
  const old = previous === undefined ? {} : { previous }
  if (value !== null) {
    return { type: 'put', key, value: exactCopy(value), createRevision, modRevision: revision, lease, ...old }
  }
  const gone = previous as KeyValue
  return { type: 'delete', key, value: gone.value, createRevision, modRevision: revision, lease: gone.lease, ...old }
}

const SNAPSHOT_FORMAT = 'hyperkube-memory-1'

/** A store with the content of a snapshot that a memory backend wrote, and no history. */
export async function openMemorySnapshot(file: string, options: MemoryOptions): Promise<Backend> {
  const snapshot = deserialize(await readFile(file)) as MemoryState & { readonly format: string }
  if (snapshot.format !== SNAPSHOT_FORMAT) {
    throw new StorageError('corrupt', `"${file}" is not a snapshot of a memory store`)
  }
  return createMemoryBackend(options, snapshot)
}

function closedError(): StorageError {
  return new StorageError('closed', 'The store was closed')
}
