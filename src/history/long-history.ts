/**
 * The past of a store: from the store as far as it reaches, and from its history file before. It keeps the promises of
 * `Backend` for past states and for changes.
 */
import type { Clock } from '#lib/clock.ts'
import type { Random } from '#lib/random.ts'
import {
  type Backend,
  type HealthOptions,
  type KeyValue,
  type Revision,
  type StorageEvent,
  StorageError,
  type WatchOptions,
} from '#storage/backend.ts'
import { createMemoryBackend } from '#storage/memory.ts'

import type { Historian } from './historian.ts'
import { ALL_KEYS } from './history-file.ts'
import { type Gap, HistoryGapError, type KeyRange, type RecordedChange } from './recorded-change.ts'

export interface PastEvent extends StorageEvent {
  /** The writer and the causes as JSON, if the history file has them. */
  readonly note?: string
}

export interface PastBatch {
  readonly revision: Revision
  readonly events: readonly PastEvent[]
}

export interface StateOptions {
  readonly revision: Revision
  readonly clock: Clock
  readonly random: Random
}

/** How far the past can be read. */
export interface Reach {
  readonly first: Revision
  readonly last: Revision
  /** Of the store and the history file. */
  readonly bytes: number
  readonly gaps: readonly Gap[]
}

export class LongHistory {
  readonly #backend: Backend
  readonly #historian: Historian | undefined

  constructor(backend: Backend, historian: Historian | undefined) {
    this.#backend = backend
    this.#historian = historian
  }

  timeOf(revision: Revision): number | undefined {
    return this.#backend.timeOf(revision) ?? this.#historian?.times.timeOf(revision)
  }

  revisionAt(timeMs: number): Revision | undefined {
    return this.#backend.revisionAt(timeMs) ?? this.#historian?.times.revisionAt(timeMs, this.#historian.position)
  }

  /** All changes up to it are in the history file; 0 without one. */
  get recordedUntil(): Revision {
    return this.#historian?.position ?? 0
  }

  async reach(options?: HealthOptions): Promise<Reach> {
    const { compactedRevision, revision, sizeBytes } = await this.#backend.health(undefined, options)
    const store = { first: compactedRevision, last: revision, bytes: sizeBytes, gaps: [] }
    const recorded = await this.#historian?.summary().catch(() => undefined)
    const isJoined = recorded?.first !== undefined && recorded.last >= compactedRevision
    if (!isJoined) return store
    const first = Math.min(recorded.first, compactedRevision)
    return { ...store, first, bytes: sizeBytes + recorded.bytes, gaps: recorded.gaps }
  }

  /** Deletes the changes of these keys up to the revision. Returns their number; undefined without a history file. */
  async forget(range: KeyRange, through: Revision, by: string): Promise<number | undefined> {
    return this.#historian?.forget(range, through, by)
  }

  /** A store with the state at the revision, which neither sees changes of the other. Fails with `compacted`. */
  async stateAt({ revision, clock, random }: StateOptions): Promise<Backend> {
    try {
      return await this.#backend.fork({ revision, clock, random })
    } catch (error) {
      if (this.#historian === undefined || !isCompacted(error)) throw error
      const changes = await this.#historian.stateAt(ALL_KEYS, revision)
      const timeMs = this.timeOf(revision)
      return createMemoryBackend(
        { clock, random },
        {
          revision,
          items: changes.map(itemOf),
          leases: [],
          ...(timeMs !== undefined && { times: [[revision, timeMs]] }),
        },
      )
    }
  }

  /** As a watch of the backend. Fails with `compacted` at a gap. */
  async *changes(options: WatchOptions & { readonly from: Revision }): AsyncGenerator<PastBatch> {
    const { through = Infinity } = options
    let next = options.from
    while (next <= through) {
      try {
        const notes = await this.#notes(options, next)
        for await (const batch of this.#backend.watch({ ...options, from: next })) {
          yield { ...batch, events: batch.events.map((event) => withNote(event, notes.get(event.modRevision))) }
          next = batch.revision + 1
        }
        return
      } catch (error) {
        const historian = this.#historian
        if (historian === undefined || !isCompacted(error) || historian.position < next) throw error
        const until = Math.min(through, historian.position)
        yield* recordedChanges(historian, options, next, until)
        next = until + 1
      }
    }
  }

  /** Of changes that end: the notes that a server had of them before it was started again. */
  async #notes(
    { start, end = `${start}\0`, through }: WatchOptions,
    from: Revision,
  ): Promise<ReadonlyMap<Revision, string>> {
    const notes = new Map<Revision, string>()
    if (this.#historian === undefined || through === undefined) return notes
    const until = Math.min(through, this.#historian.position)
    for (let at = from - 1; at < until;) {
      const changes = await this.#historian.changesAfter({ start, end }, at, until).catch(() => [])
      for (const { modRevision, note } of changes) notes.set(modRevision, note)
      at = changes.at(-1)?.modRevision ?? until
    }
    return notes
  }
}

function withNote(event: StorageEvent, note: string | undefined): PastEvent {
  return note === undefined || note === '' ? event : { ...event, note }
}

async function* recordedChanges(
  historian: Historian,
  { start, end = `${start}\0`, signal }: WatchOptions,
  from: Revision,
  through: Revision,
): AsyncGenerator<PastBatch> {
  const range = { start, end }
  const { gaps } = await historian.summary()
  const gap = gaps.find(({ after, until }) => after < through && until > from)
  const known = Math.min(through, gap?.after ?? Infinity)
  if (from <= known) {
    const state = new Map((await historian.stateAt(range, from - 1)).map((change) => [change.key, itemOf(change)]))
    for (let at = from - 1; at < known;) {
      const changes = await historian.changesAfter(range, at, known)
      if (signal.aborted) return
      at = changes.at(-1)?.modRevision ?? known
      yield { revision: at, events: changes.flatMap((change) => eventOf(change, state)) }
    }
  }
  if (gap === undefined) return
  throw new HistoryGapError(gap)
}

/** Applies the change to `state`. Nothing for the end of a key that the history did not have. */
function eventOf(change: RecordedChange, state: Map<string, KeyValue>): PastEvent[] {
  const { type, key, createRevision, modRevision, value, note } = change
  const previous = state.get(key)
  const noted = note === '' ? {} : { note }
  if (type === 'delete') {
    state.delete(key)
    return previous === undefined ? [] : [{ ...previous, type, modRevision, previous, ...noted }]
  }
  state.set(key, itemOf(change))
  const before = previous === undefined ? {} : { previous }
  return [{ type: 'put', key, value, createRevision, modRevision, lease: 0, ...before, ...noted }]
}

function itemOf({ key, value, createRevision, modRevision }: RecordedChange): KeyValue {
  return { key, value, createRevision, modRevision, lease: 0 }
}

function isCompacted(error: unknown): boolean {
  return error instanceof StorageError && error.code === 'compacted'
}
