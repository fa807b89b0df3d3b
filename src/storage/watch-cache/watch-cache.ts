/**
 * Watch cache: the whole store in memory, kept up to date by one watch. A consistent read asks the backend for its
 * newest revision and waits until the cache has applied it.
 */
import { type Clock, every, sleep } from '#lib/clock.ts'

import {
  type Backend,
  type KeyValue,
  prefixEnd,
  type RangeResult,
  type Revision,
  type StorageEvent,
  StorageError,
  type WatchBatch,
} from '../backend.ts'
import type { CollectionMeter } from './collection-meter.ts'
import { Collection, digestOf, type Unreadable } from './collection.ts'
import type { IndexOf } from './readers.ts'
import { RevisionWaiters } from './revision-waiters.ts'
import type { Keyed } from './ring.ts'

export interface WatchCacheOptions {
  readonly backend: Backend
  readonly clock: Clock
  /** The prefix of all our keys. The watch covers the whole keyspace, because other writes move the revision too. */
  readonly prefix: string
  /** The time for which changes stay readable; watches and lists may start this far back. */
  readonly windowMs?: number
  readonly maxChanges?: number
  /** How much memory the changes of one collection may take beyond its state. */
  readonly maxChangedBytes?: number
  /** The interval for comparing the cache with the backend. */
  readonly checkEveryMs?: number
  /** Receives repairs that the cache made by itself. */
  readonly onRepair?: (event: RepairEvent) => void
}

export interface RepairEvent {
  readonly reason: 'mismatch' | 'compacted' | 'revision-went-back' | 'unreadable'
  /** The prefix of the collection concerned, or of all. */
  readonly prefix: string
  readonly revision: Revision
}

export interface CollectionSpec<E extends Keyed> {
  /** `/registry/pods/`: no collection's prefix is the prefix of another's. */
  readonly prefix: string
  /**
   * Makes the entry of a stored value. `isListed`: it is part of a larger buffer that is kept as well. Throws for an
   * undecodable value, which is then no entry: see `Collection.unreadableAt`.
   */
  readonly describe: (stored: KeyValue, isListed: boolean) => E
  readonly indexOf?: IndexOf<E>
  readonly meter?: CollectionMeter
}

/** A collection and its updates. */
interface Slot<E extends Keyed = Keyed> {
  readonly spec: CollectionSpec<E>
  readonly collection: Collection<E>
  /** Events that arrived during the first listing; undefined once it is complete. */
  waiting: StorageEvent[] | undefined
}

/** The history that a start reads, so that watchers resume over a restart without listing again. */
const PRIME_REVISIONS = 2000
const RETRY_MS = 250

export class WatchCache {
  readonly #options: Required<Omit<WatchCacheOptions, 'onRepair'>>
  readonly #onRepair: (event: RepairEvent) => void
  /** By prefix without the common part; looked up by the key's own leading segments. */
  readonly #slots = new Map<string, Slot>()
  readonly #stop = new AbortController()
  readonly #waiters = new RevisionWaiters(this.#stop.signal)
  /** The newest revision over time, for the window. */
  readonly #marks: { readonly atMs: number; readonly revision: Revision }[] = []
  #running: Promise<void> | undefined
  /** The linearizable read that the next consistent reader may share, because it has not been sent yet. */
  #nextRevision: Promise<Revision> | undefined
  #revisionInFlight: Promise<unknown> = Promise.resolve()

  constructor(options: WatchCacheOptions) {
    const defaults = { windowMs: 300_000, maxChanges: 100_000, maxChangedBytes: 64 << 20, checkEveryMs: 30_000 }
    this.#options = { ...defaults, ...options }
    this.#onRepair = options.onRepair ?? (() => undefined)
  }

  /** Everything up to here has been applied and delivered. */
  get revision(): Revision {
    return this.#applied
  }

  get #applied(): Revision {
    return this.#waiters.applied
  }

  /** Starts following the backend. Collections opened before also receive changes from before the start. */
  async start(): Promise<void> {
    const { backend, clock, prefix } = this.#options
    const { signal } = this.#stop
    const health = await backend.health(signal, { withoutSizes: true })
    const there = await backend.range({ start: prefix, end: prefixEnd(prefix), countOnly: true, signal })
    // In an empty store there is nothing to wait for: a watch of its past may deliver nothing.
    const earliest = there.count === 0 ? health.revision + 1 : health.revision - PRIME_REVISIONS
    const from = Math.max(health.compactedRevision + 1, earliest, 1)
    this.#waiters.set(from - 1)
    for (const slot of this.#slots.values()) slot.collection.reset(this.#applied)
    this.#running = this.#follow()
    const loading = [...this.#slots.values()].map((slot) => this.#load(slot))
    await Promise.all([...loading, this.waitFor(health.revision)])
    const timers = [
      every(clock, this.#options.windowMs / 10, () => this.#expire()),
      every(clock, this.#options.checkEveryMs, () => void this.check().catch(() => undefined)),
    ]
    this.#stop.signal.addEventListener('abort', () => timers.forEach((timer) => timer.cancel()))
  }

  /** Adds a resource. Resolves when its state is complete; before `start`, at once. */
  async open<E extends Keyed>(spec: CollectionSpec<E>): Promise<Collection<E>> {
    const { windowMs, maxChanges, maxChangedBytes: maxBytes } = this.#options
    const collection = new Collection<E>({
      prefix: spec.prefix,
      indexOf: spec.indexOf ?? (() => ''),
      limits: { windowMs, maxChanges, maxBytes },
      floor: this.#applied,
      appliedRevision: () => this.#applied,
    })
    const slot: Slot<E> = { spec, collection, waiting: [] }
    // A slot passes its collection only entries that its own spec made.
    this.#slots.set(spec.prefix, slot as unknown as Slot)
    if (this.#running !== undefined) await this.#load(slot as unknown as Slot)
    return collection
  }

  /** Removes a resource: its readers lose their position and get an error. */
  drop(prefix: string): void {
    this.#slots.get(prefix)?.collection.reset(this.#applied)
    this.#slots.delete(prefix)
  }

  /** Resolves when everything up to `revision` has been applied; rejects when the signal is aborted first. */
  waitFor(revision: Revision, signal?: AbortSignal): Promise<void> {
    return this.#waiters.waitFor(revision, signal)
  }

  /** True if `fresh` certainly has nothing to wait for, without a request. Throws if the backend is gone. */
  get isFresh(): boolean {
    const known = this.#options.backend.knownRevision?.()
    return known !== undefined && known <= this.#applied
  }

  /** Waits until the cache has every commit acknowledged before this call; returns that revision. */
  async fresh(signal?: AbortSignal): Promise<Revision> {
    const revision = await this.acknowledged()
    await this.waitFor(revision, signal)
    return revision
  }

  /**
   * The newest revision acknowledged before this call, which the cache may not have yet. Callers that arrive during a
   * request to the backend share the next one, so a thousand reads cost two requests.
   */
  acknowledged(): Promise<Revision> {
    this.#nextRevision ??= this.#revisionInFlight.then(() => {
      this.#nextRevision = undefined
      const question = this.#options.backend.currentRevision()
      this.#revisionInFlight = question.catch(() => undefined)
      return question
    })
    return this.#nextRevision
  }

  /**
   * Compares every collection with the backend and rebuilds those that differ; returns the rebuilt prefixes. It
   * repairs a divergence that no user has noticed.
   */
  async check(): Promise<string[]> {
    const rebuilt: string[] = []
    for (const slot of this.#slots.values()) {
      if (slot.waiting !== undefined) continue
      const isSame = await this.#agrees(slot.collection)
      slot.spec.meter?.checked(isSame)
      if (isSame) continue
      rebuilt.push(slot.spec.prefix)
      this.#onRepair({ reason: 'mismatch', prefix: slot.spec.prefix, revision: this.#applied })
      await this.#rebuild(slot)
    }
    return rebuilt
  }

  async close(): Promise<void> {
    this.#stop.abort(new StorageError('closed', 'The watch cache was closed'))
    await this.#running
    for (const slot of this.#slots.values()) slot.collection.reset(this.#applied)
  }

  async #follow(): Promise<void> {
    const { backend, clock } = this.#options
    const { signal } = this.#stop
    while (!signal.aborted) {
      try {
        const whole = { start: '\0', end: prefixEnd('\u007f'), from: this.#applied + 1, signal }
        for await (const batch of backend.watch(whole)) this.#apply(batch)
      } catch (cause) {
        if (signal.aborted) return
        if (cause instanceof StorageError && cause.code === 'compacted') this.#startOver(cause.compactedRevision)
        await sleep(clock, RETRY_MS, signal).catch(() => undefined)
      }
    }
  }

  /** The cache was away for longer than the backend keeps history: missed changes are only in the state. */
  #startOver(compacted: Revision = this.#applied): void {
    this.#onRepair({ reason: 'compacted', prefix: this.#options.prefix, revision: compacted })
    this.#waiters.set(Math.max(this.#applied, compacted))
    // Loading waits for the watch to continue, so it runs concurrently.
    for (const slot of this.#slots.values()) void this.#rebuild(slot).catch(() => undefined)
  }

  #apply(batch: WatchBatch): void {
    if (batch.revision <= this.#applied && batch.events.length > 0) {
      // etcd before 3.4.25 can repeat old events after a snapshot; they have been applied.
      this.#onRepair({ reason: 'revision-went-back', prefix: this.#options.prefix, revision: batch.revision })
      return
    }
    const atMs = this.#options.clock.now()
    for (const event of batch.events) {
      const slot = this.#slotOf(event.key)
      if (slot?.waiting !== undefined) slot.waiting.push(event)
      else if (slot !== undefined) this.#applyTo(slot, event, atMs)
    }
    this.#waiters.reach(batch.revision)
  }

  /**
   * A value that cannot be read now, because its key is missing, blocks its own collection, which is read until it can
   * be. An undecodable one is left out and blocks nothing.
   */
  #applyTo(slot: Slot, event: StorageEvent, atMs: number): void {
    const { key, modRevision } = event
    slot.spec.meter?.received.inc()
    let entry: Keyed | undefined
    try {
      entry = event.type === 'put' ? slot.spec.describe(event, false) : undefined
    } catch (error) {
      if (isPassing(error)) return void this.#recover(slot)
      slot.collection.lose({ key, modRevision, error }, atMs)
      this.#onRepair({ reason: 'unreadable', prefix: key, revision: modRevision })
      return
    }
    slot.collection.apply({ revision: modRevision, key, entry, atMs })
    slot.spec.meter?.applied.inc()
    slot.spec.meter?.dispatched.inc()
  }

  async #recover(slot: Slot): Promise<void> {
    const { clock } = this.#options
    const { signal } = this.#stop
    while (!signal.aborted) {
      try {
        return await this.#rebuild(slot)
      } catch {
        await sleep(clock, RETRY_MS, signal).catch(() => undefined)
      }
    }
  }

  /** `/registry/pods/ns/name`: the slot of `/registry/pods/`, of `/registry/pods/ns/`, … whichever there is. */
  #slotOf(key: string): Slot | undefined {
    for (let at = key.indexOf('/', this.#options.prefix.length); at >= 0; at = key.indexOf('/', at + 1)) {
      const slot = this.#slots.get(key.slice(0, at + 1))
      if (slot !== undefined) return slot
    }
    return undefined
  }

  /**
   * Lists a collection and joins it with the events that arrived meanwhile. Retries until it succeeds or the cache is
   * closed; stops if the collection was reset meanwhile, because then a later load does it.
   */
  async #load(slot: Slot): Promise<void> {
    const { prefix, describe } = slot.spec
    const waiting = slot.waiting ?? []
    const listed = await this.#list(prefix)
    await this.waitFor(listed.revision)
    if (slot.waiting !== waiting) return
    const atMs = this.#options.clock.now()
    const { entries, unreadable } = describeAll(listed.items, describe)
    slot.collection.load(entries, unreadable)
    for (const { key, modRevision: revision } of unreadable)
      this.#onRepair({ reason: 'unreadable', prefix: key, revision })
    slot.waiting = undefined
    for (const event of waiting) {
      if (event.modRevision > listed.revision) this.#applyTo(slot, event, atMs)
      else rememberChange(slot, event, atMs)
    }
    slot.collection.loaded()
    slot.spec.meter?.initialized.inc()
  }

  async #list(prefix: string): Promise<RangeResult> {
    const { backend, clock } = this.#options
    const { signal } = this.#stop
    for (;;) {
      try {
        return await backend.range({ start: prefix, end: prefixEnd(prefix), signal })
      } catch (cause) {
        if (!isPassing(cause)) throw cause
        await sleep(clock, RETRY_MS, signal)
      }
    }
  }

  async #rebuild(slot: Slot): Promise<void> {
    slot.waiting = []
    slot.collection.reset(this.#applied)
    await this.#load(slot)
  }

  async #agrees(collection: Collection<Keyed>): Promise<boolean> {
    const { backend } = this.#options
    const { signal } = this.#stop
    const { digest, prefix } = collection
    const revision = this.#applied
    const end = prefixEnd(prefix)
    let sum = 0
    for (let start = prefix; ;) {
      const page = await backend.range({ start, end, revision, limit: CHECK_PAGE, keysOnly: true, signal })
      for (const item of page.items) sum = (sum + digestOf(item)) >>> 0
      const last = page.items.at(-1)
      if (!page.more || last === undefined) return sum === digest
      start = `${last.key}\0`
    }
  }

  #expire(): void {
    const nowMs = this.#options.clock.now()
    this.#marks.push({ atMs: nowMs, revision: this.#applied })
    const last = this.#marks.findLastIndex(({ atMs }) => atMs + this.#options.windowMs <= nowMs)
    this.#marks.splice(0, last)
    const horizon = last < 0 ? 0 : (this.#marks[0]?.revision ?? 0)
    for (const { collection } of this.#slots.values()) collection.expire(nowMs, horizon)
  }
}

/** Keys per read of a comparison: a millisecond. The backend counts the rest each time, so not too few. */
const CHECK_PAGE = 10_000

function isPassing(cause: unknown): boolean {
  return cause instanceof StorageError && (cause.code === 'unavailable' || cause.code === 'timeout')
}

/** Rethrows temporary errors. */
function describeAll<E extends Keyed>(
  items: readonly KeyValue[],
  describe: CollectionSpec<E>['describe'],
): { readonly entries: E[]; readonly unreadable: Unreadable[] } {
  const entries: E[] = []
  const unreadable: Unreadable[] = []
  for (const stored of items) {
    try {
      entries.push(describe(stored, true))
    } catch (error) {
      if (isPassing(error)) throw error
      unreadable.push({ key: stored.key, modRevision: stored.modRevision, error })
    }
  }
  return { entries, unreadable }
}

/** Skips undecodable values of the past, which no watcher could receive. */
function rememberChange({ spec, collection }: Slot, event: StorageEvent, atMs: number): void {
  const { key, modRevision: revision } = event
  // Mostly the last change of its key, which has been listed.
  const listed = collection.get(key)
  const made = (): Keyed => (listed?.modRevision === revision ? listed : spec.describe(event, false))
  try {
    collection.remember({
      revision,
      key,
      entry: event.type === 'put' ? made() : undefined,
      previous: event.previous === undefined ? undefined : spec.describe(event.previous, false),
      atMs,
    })
  } catch (cause) {
    if (isPassing(cause)) throw cause
  }
}
