/**
 * Readers of one collection's changes, indexed by what they want. Whether a change concerns a filter, and as what, is
 * decided once for each distinct filter, however many watchers share it; filters that pin a field to one value (a
 * kubelet's `spec.nodeName`) are only asked about changes that touch that value.
 */
import type { Revision } from '../backend.ts'
import type { Change, ChangeType, Keyed, Ring } from './ring.ts'

export interface Filter<E> {
  /** Two filters with the same id match the same entries. */
  readonly id: string
  matches(entry: E): boolean
  /** A necessary condition that can be looked up: the entry's index value of this name is this value. */
  readonly pin?: { readonly index: string; readonly value: string }
}

/** A change as one filter sees it. */
export interface Seen<E extends Keyed> {
  readonly type: ChangeType
  readonly change: Change<E>
}

/** Where a reader's changes go. Calls come in order, never nested, never after the reader was closed. */
export interface Sink<E extends Keyed> {
  /** Returns false when there is no room for more: the reader then waits in the ring until `resume`. */
  change(type: ChangeType, change: Change<E>): boolean
  /**
   * The same for several, by who need not be told in the moment a change becomes visible: readers by the thousand are
   * told a slice in a turn of the event loop, and get what has come meanwhile in one go.
   */
  changes?(seen: readonly Seen<E>[]): boolean
  /** The reader has lost its place (it was too slow, or the cache was rebuilt) and gets nothing any more. */
  expired(): void
}

export interface Reader {
  /** There is room again. */
  resume(): void
  /** Everything up to this revision has been handed over: what a bookmark may say. */
  position(): Revision
  close(): void
}

/** Pulls entry values by index name; the same for all entries of a collection. */
export type IndexOf<E> = (entry: E, index: string) => string

/** All readers with one filter. Those that are not behind are in one of the two sets. */
interface Group<E extends Keyed> {
  readonly filter: Filter<E>
  /** Told at once. */
  readonly live: Set<ReaderState<E>>
  /** Told in slices. */
  readonly patient: Set<ReaderState<E>>
  /** What not all of the patient have been told yet. Empty, or the group is due. */
  untold: (Seen<E> & { readonly position: number })[]
  /** Those of the patient whose turn is to come. */
  round: ReaderState<E>[]
  members: number
}

interface ReaderState<E extends Keyed> {
  readonly group: Group<E>
  readonly sink: Sink<E>
  /** The next change to look at; of one that is told at once, where it stood when it became so. */
  next: number
  closed: boolean
}

/** How many changes one turn hands to a reader that catches up: others want the event loop too. */
const CATCH_UP_CHANGES = 500
/** How many readers are told in a turn: a few milliseconds when each has a connection of its own. */
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
  /** Groups without a pin: asked about every change. */
  readonly #unpinned = new Set<Group<E>>()
  /** index name → value → groups pinned to it. */
  readonly #pinned = new Map<string, Map<string, Set<Group<E>>>>()
  /** Groups with something untold. */
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
   * Starts a reader with the changes after `revision`. Undefined when those are no longer all there. What is already in
   * the ring is handed over before this returns, as far as there is room.
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

  /** Hands a change, already in the ring, to every live reader it concerns. */
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

  /** Tells every reader that its place is lost. */
  expireAll(): void {
    for (const group of this.#groups.values()) {
      for (const reader of [...group.live, ...group.patient]) this.#expire(reader)
    }
    // Readers that wait for room learn it when they resume: the ring no longer has their position.
  }

  #tellLater(group: Group<E>, type: ChangeType, change: Change<E>): void {
    group.untold.push({ type, change, position: this.#ring.end - 1 })
    this.#due.add(group)
    if (this.#isTelling) return
    this.#isTelling = true
    // When all changes that came together have been applied.
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

  /** Tells one reader all it has not been told; returns how many it told. */
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
    const told = sink.changes === undefined ? group.live : group.patient
    if (reader.closed || told.has(reader)) return
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
    told.add(reader)
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

  /** Groups whose pin fits the entry before or after the change, and all groups without one. */
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

/** What the change is to the filter; undefined when it does not concern it. Remembered with the change. */
function decide<E extends Keyed>(filter: Filter<E>, change: Change<E>): ChangeType | undefined {
  const known = change.decisions.get(filter.id)
  if (known !== undefined) return known === 'none' ? undefined : known
  const now = change.entry !== undefined && filter.matches(change.entry)
  const before = change.previous !== undefined && filter.matches(change.previous)
  const type = now ? (before ? 'MODIFIED' : 'ADDED') : before ? 'DELETED' : undefined
  change.decisions.set(filter.id, type ?? 'none')
  return type
}
