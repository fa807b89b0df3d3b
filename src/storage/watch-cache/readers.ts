/**
 * The readers of one collection's changes, indexed by filter. A change is evaluated once for each distinct filter,
 * however many watchers share the filter.
 */
import type { Revision } from '../backend.ts'
import type { Change, ChangeType, Keyed, Ring } from './ring.ts'

export interface Filter<E> {
  /** Two filters with the same id match the same entries. */
  readonly id: string
  matches(entry: E): boolean
  /** A necessary condition that can be indexed: the entry's index value of this name is this value. */
  readonly pin?: { readonly index: string; readonly value: string }
}

/** A change as one filter sees it. */
export interface FilteredChange<E extends Keyed> {
  readonly type: ChangeType
  readonly change: Change<E>
}

/** The receiver of a reader's changes. Calls come in order, never nested, never after the reader was closed. */
export interface Sink<E extends Keyed> {
  /** Returns false if it is full: the reader then waits in the ring until `resume`. */
  change(type: ChangeType, change: Change<E>): boolean
  /**
   * Receives several changes at once, for readers that need not be notified at the moment a change becomes visible:
   * thousands of readers are notified in portions per turn of the event loop, and get everything since in one batch.
   */
  changes?(seen: readonly FilteredChange<E>[]): boolean
  /** The reader has lost its position (it was too slow, or the cache was rebuilt) and gets nothing more. */
  expired(): void
}

export interface Reader {
  /** The sink has room again. */
  resume(): void
  /** Everything up to this revision has been delivered: the revision for a bookmark. */
  position(): Revision
  close(): void
}

/** Reads entry values by index name; the same for all entries of a collection. */
export type IndexOf<E> = (entry: E, index: string) => string

/** All readers with one filter. Those that keep up are in one of the two sets. */
interface Group<E extends Keyed> {
  readonly filter: Filter<E>
  /** Notified at once. */
  readonly live: Set<ReaderState<E>>
  /** Notified in portions. */
  readonly patient: Set<ReaderState<E>>
  /** Changes that not all patient readers have received. Empty, or the group is due. */
  untold: (FilteredChange<E> & { readonly position: number })[]
  /** The patient readers still to notify. */
  round: ReaderState<E>[]
  members: number
}

interface ReaderState<E extends Keyed> {
  readonly group: Group<E>
  readonly sink: Sink<E>
  /** The next change to deliver; for an immediate reader, its position when it became one. */
  next: number
  closed: boolean
}

/** The number of changes per turn for a reader that catches up, because other work needs the event loop. */
const CATCH_UP_CHANGES = 500
/** The number of readers notified per turn: a few milliseconds if each has a separate connection. */
const READERS_PER_TURN = 128

export interface ReadersOptions<E extends Keyed> {
  readonly ring: Ring<E>
  readonly indexOf: IndexOf<E>
  /** The newest revision applied, also by changes of other collections. */
  readonly appliedRevision: () => Revision
}

export class Readers<E extends Keyed> {
  readonly #ring: Ring<E>
  readonly #indexOf: IndexOf<E>
  readonly #appliedRevision: () => Revision
  readonly #groups = new Map<string, Group<E>>()
  /** Groups without a pin: evaluated for every change. */
  readonly #unpinned = new Set<Group<E>>()
  /** index name → value → groups pinned to it. */
  readonly #pinned = new Map<string, Map<string, Set<Group<E>>>>()
  /** Groups with undelivered changes. */
  readonly #due = new Set<Group<E>>()
  #isTelling = false

  constructor(options: ReadersOptions<E>) {
    this.#ring = options.ring
    this.#indexOf = options.indexOf
    this.#appliedRevision = options.appliedRevision
  }

  get count(): number {
    let count = 0
    for (const group of this.#groups.values()) count += group.members
    return count
  }

  /**
   * Starts a reader with the changes after `revision`. Undefined if those are incomplete. Changes in the ring are
   * delivered before this returns, as far as there is room.
   */
  open(filter: Filter<E>, revision: Revision, sink: Sink<E>): Reader | undefined {
    const next = this.#ring.after(revision)
    if (next === undefined) return undefined
    const group = this.#groupFor(filter)
    group.members++
    const reader: ReaderState<E> = { group, sink, next, closed: false }
    this.#catchUp(reader)
    return {
      resume: () => this.#catchUp(reader),
      position: () => this.#position(reader),
      close: () => this.#close(reader),
    }
  }

  /** Delivers a change, already in the ring, to every live matching reader. */
  deliver(change: Change<E>): void {
    for (const group of this.#concerned(change)) {
      if (group.live.size + group.patient.size === 0) continue
      const type = decide(group.filter, change)
      if (type === undefined) continue
      if (group.patient.size > 0) this.#tellLater(group, type, change)
      for (const reader of group.live) {
        // A reader that joined during this delivery has found the change in the ring already.
        if (reader.next >= this.#ring.end || reader.sink.change(type, change)) continue
        group.live.delete(reader)
        reader.next = this.#ring.end
      }
    }
  }

  /** Ends every reader: its position is lost. */
  expireAll(): void {
    for (const group of this.#groups.values()) {
      for (const reader of [...group.live, ...group.patient]) this.#expire(reader)
    }
    // Waiting readers notice it when they resume: the ring no longer has their position.
  }

  #tellLater(group: Group<E>, type: ChangeType, change: Change<E>): void {
    group.untold.push({ type, change, position: this.#ring.end - 1 })
    this.#due.add(group)
    if (this.#isTelling) return
    this.#isTelling = true
    // After all concurrent changes have been applied.
    queueMicrotask(() => this.#tell())
  }

  #tell(): void {
    let readers = READERS_PER_TURN
    for (const group of this.#due) {
      while (readers > 0 && group.untold.length > 0) readers -= this.#tellNext(group)
      if (group.untold.length > 0) break
      this.#due.delete(group)
    }
    this.#isTelling = this.#due.size > 0
    if (this.#isTelling) setImmediate(() => this.#tell())
  }

  /** Delivers all pending changes to one reader; returns their number. */
  #tellNext(group: Group<E>): 0 | 1 {
    const { untold, patient } = group
    const reader = group.round.pop()
    if (reader === undefined) {
      const last = untold.at(-1)?.position ?? 0
      group.round = [...patient].filter(({ next }) => next <= last)
      if (group.round.length === 0) group.untold = []
      return 0
    }
    const seen = untold.filter(({ position }) => position >= reader.next)
    if (seen.length === 0 || !patient.has(reader)) return 0
    reader.next = (untold.at(-1)?.position ?? 0) + 1
    if (reader.sink.changes?.(seen) === false) patient.delete(reader)
    return 1
  }

  #position(reader: ReaderState<E>): Revision {
    const { group, next } = reader
    const isWaiting = !group.live.has(reader) && !group.patient.has(reader)
    const untold = isWaiting ? this.#ring.at(next) : group.untold.find(({ position }) => position >= next)?.change
    return untold === undefined || group.live.has(reader) ? this.#appliedRevision() : untold.revision - 1
  }

  #catchUp(reader: ReaderState<E>): void {
    const { group, sink } = reader
    const notifiedSet = sink.changes === undefined ? group.live : group.patient
    if (reader.closed || notifiedSet.has(reader)) return
    for (let handed = 0; reader.next < this.#ring.end; reader.next++) {
      const change = this.#ring.at(reader.next)
      if (change === undefined) return this.#expire(reader)
      const type = decide(group.filter, change)
      if (type === undefined) continue
      if (handed++ >= CATCH_UP_CHANGES) {
        setImmediate(() => this.#catchUp(reader))
        return
      }
      if (!sink.change(type, change)) {
        reader.next++
        return
      }
      if (reader.closed) return
    }
    notifiedSet.add(reader)
  }

  #expire(reader: ReaderState<E>): void {
    if (reader.closed) return
    this.#close(reader)
    reader.sink.expired()
  }

  #close(reader: ReaderState<E>): void {
    if (reader.closed) return
    reader.closed = true
    const { group } = reader
    group.live.delete(reader)
    group.patient.delete(reader)
    group.members--
    if (group.members === 0) this.#forget(group)
  }

  #groupFor(filter: Filter<E>): Group<E> {
    const known = this.#groups.get(filter.id)
    if (known !== undefined) return known
    const group: Group<E> = { filter, live: new Set(), patient: new Set(), untold: [], round: [], members: 0 }
    this.#groups.set(filter.id, group)
    if (filter.pin === undefined) this.#unpinned.add(group)
    else this.#pinnedTo(filter.pin).add(group)
    return group
  }

  #pinnedTo({ index, value }: { readonly index: string; readonly value: string }): Set<Group<E>> {
    const values = this.#pinned.get(index) ?? new Map<string, Set<Group<E>>>()
    this.#pinned.set(index, values)
    const groups = values.get(value) ?? new Set<Group<E>>()
    values.set(value, groups)
    return groups
  }

  #forget(group: Group<E>): void {
    const { id, pin } = group.filter
    this.#groups.delete(id)
    if (pin === undefined) {
      this.#unpinned.delete(group)
      return
    }
    const values = this.#pinned.get(pin.index)
    const groups = values?.get(pin.value)
    groups?.delete(group)
    if (groups?.size === 0) values?.delete(pin.value)
    if (values?.size === 0) this.#pinned.delete(pin.index)
  }

  /** Groups whose pin matches the entry before or after the change, and all groups without one. */
  *#concerned({ entry, previous }: Change<E>): Generator<Group<E>, void, undefined> {
    yield* this.#unpinned
    for (const [index, values] of this.#pinned) {
      const now = entry === undefined ? undefined : this.#indexOf(entry, index)
      const before = previous === undefined ? undefined : this.#indexOf(previous, index)
      if (now !== undefined) yield* values.get(now) ?? []
      if (before !== undefined && before !== now) yield* values.get(before) ?? []
    }
  }
}

/** The effect of the change on the filter; undefined if there is none. Cached with the change. */
function decide<E extends Keyed>(filter: Filter<E>, change: Change<E>): ChangeType | undefined {
  const known = change.decisions.get(filter.id)
  if (known !== undefined) return known === 'none' ? undefined : known
  const now = change.entry !== undefined && filter.matches(change.entry)
  const before = change.previous !== undefined && filter.matches(change.previous)
  const type = now ? (before ? 'MODIFIED' : 'ADDED') : before ? 'DELETED' : undefined
  change.decisions.set(filter.id, type ?? 'none')
  return type
}
