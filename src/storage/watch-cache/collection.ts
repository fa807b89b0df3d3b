/**
 * Collection: the current state of one resource (every key under one prefix), its recent changes, and its readers. The
 * state is a tree that never changes; a change makes another that shares nearly all of it. So whoever reads a large
 * collection in parts holds on to one state, and an earlier one inside the window is made by undoing later changes.
 */
import { prefixEnd, type Revision } from '../backend.ts'
import { OrderedTree } from '../ordered-tree.ts'
import { type Filter, type IndexOf, type Reader, Readers, type Sink } from './readers.ts'
import { Change, type ChangeParts, type Keyed, Ring, type RingLimits } from './ring.ts'

export interface CollectionOptions<E extends Keyed> {
  readonly prefix: string
  readonly indexOf: IndexOf<E>
  readonly limits: RingLimits
  /** The revision the state begins at. */
  readonly floor: Revision
  readonly appliedRevision: () => Revision
}

/** Which part of a collection, in order of key. */
export interface Slice {
  /** Only keys under this prefix (a namespace); absent: all. */
  readonly prefix?: string
  /** Only keys after this one: where the previous page ended. */
  readonly after?: string
}

/** A stored value that cannot be understood. */
export interface Unreadable extends Keyed {
  readonly error: unknown
}

export class Collection<E extends Keyed> {
  readonly prefix: string
  #state = OrderedTree.empty<E>(RUN_ENTRIES)
  readonly #ring: Ring<E>
  readonly #readers: Readers<E>
  /** The revision of the last change here, which is what a list's memo depends on. */
  #changedAt: Revision
  /** Sum over all entries of a hash of key and revision: equal sums mean equal states, at no cost for keeping it. Undefined: to be found out. */
  #digest: number | undefined = 0
  #loading = Promise.withResolvers<void>()
  #isLoaded = false
  /** What is stored and cannot be understood, by key: it is no entry, and whoever needs it must hear that it is there. */
  readonly #unreadable = new Map<string, Unreadable>()
  /** Earlier states, by the position in the ring of the change that ended each. */
  readonly #past = new Map<number, OrderedTree<E>>()
  #horizon: Revision = 0

  constructor(options: CollectionOptions<E>) {
    this.prefix = options.prefix
    this.#ring = new Ring<E>(options.limits, options.floor)
    this.#changedAt = options.floor
    this.#readers = new Readers<E>({
      ring: this.#ring,
      indexOf: options.indexOf,
      appliedRevision: options.appliedRevision,
    })
  }

  /** False while the state is being listed, at first or anew; reads must wait for `ready` then. */
  get isLoaded(): boolean {
    return this.#isLoaded
  }

  /** Resolves when the state is there. */
  get ready(): Promise<void> {
    return this.#loading.promise
  }

  get size(): number {
    return this.#state.size
  }

  get readers(): number {
    return this.#readers.count
  }

  /** The revision of the last change: anything derived from the whole collection holds while this stands still. */
  get changedAt(): Revision {
    return this.#changedAt
  }

  /** The oldest revision whose state and changes are known here. */
  get floor(): Revision {
    return this.#ring.floor
  }

  /** Why the state lacks this key, or some key that begins so; undefined when it lacks none. */
  unreadableAt(prefix: string): unknown {
    if (this.#unreadable.size === 0) return undefined
    for (const [key, { error }] of this.#unreadable) if (key.startsWith(prefix)) return error
    return undefined
  }

  /** Equal to `digestOf` summed over the same keys at the same revisions. */
  get digest(): number {
    const all = (): readonly Keyed[] => [...this.entries(), ...this.#unreadable.values()]
    this.#digest ??= all().reduce((sum, one) => (sum + digestOf(one)) >>> 0, 0)
    return this.#digest
  }

  get(key: string): E | undefined {
    return this.#state.get(key)
  }

  /** As it is now. What is handed out never changes. */
  get state(): OrderedTree<E> {
    return this.#state
  }

  /** The current entries of a slice, in order, in an array of the caller's own. */
  entries(slice: Slice = {}): E[] {
    const { start, end } = boundsOf({ prefix: this.prefix, ...slice })
    return [...this.#state.slices(start, end)].flat()
  }

  /**
   * As it was at `revision`; undefined when that is no longer known here. Remembered, as whoever reads a part of a state
   * will ask for the next.
   */
  stateAt(revision: Revision): OrderedTree<E> | undefined {
    if (revision < this.#horizon) return undefined
    const next = revision >= this.#changedAt ? this.#ring.end : this.#ring.after(revision)
    if (next === undefined) return undefined
    const state = this.#past.get(next) ?? this.#undoneTo(next)
    this.#past.delete(next)
    this.#past.set(next, state)
    if (this.#past.size > PAST_STATES) this.#past.delete(this.#past.keys().next().value ?? next)
    return state
  }

  /** Undefined when changes after `revision` are no longer all known: the watch is too old. */
  watch(filter: Filter<E>, revision: Revision, sink: Sink<E>): Reader | undefined {
    return this.#readers.open(filter, revision, sink)
  }

  /** What the first listing found, all of it, in order of key. Not a change: nobody watches yet. */
  load(entries: readonly E[], unreadable: readonly Unreadable[] = []): void {
    this.#state = OrderedTree.fromSorted(entries, ({ key }) => key, RUN_ENTRIES)
    this.#unreadable.clear()
    for (const one of unreadable) this.#unreadable.set(one.key, one)
    this.#digest = undefined
  }

  /** The state is whole. */
  loaded(): void {
    this.#isLoaded = true
    this.#loading.resolve()
  }

  /** A change from before the first listing, so that watches and lists may start from earlier revisions than this cache. */
  remember(change: ChangeParts<E>): void {
    this.#changedAt = change.revision
    this.#ring.push(new Change(change))
  }

  /** The key has a value that nobody understands: to those who watch, what was there has gone. */
  lose(unreadable: Unreadable, atMs: number): void {
    const { key, modRevision: revision } = unreadable
    this.apply({ revision, key, entry: undefined, atMs })
    this.#setUnreadable(key, unreadable)
  }

  apply(change: Omit<ChangeParts<E>, 'previous'>): void {
    const { key, entry } = change
    if (this.#unreadable.size > 0) this.#setUnreadable(key, undefined)
    const previous = this.#state.get(key)
    if (entry === undefined && previous === undefined) return
    this.#state = entry === undefined ? this.#state.delete(key) : this.#state.set(key, entry)
    this.#account(previous, entry)
    const whole = new Change<E>({ ...change, previous })
    this.#changedAt = change.revision
    this.#ring.push(whole)
    this.#readers.deliver(whole)
  }

  /**
   * Lets go of changes and past states older than the window. States before `horizon` are then no longer known here, even where
   * nothing has changed since: who pages through a list is told that it is too old, as upstream's store would.
   */
  expire(nowMs: number, horizon: Revision): void {
    this.#horizon = horizon
    this.#ring.expire(nowMs)
    for (const next of this.#past.keys()) if (next < this.#ring.first) this.#past.delete(next)
  }

  /** Throws the state away; readers are told that they have lost their place. `load` fills it anew. */
  reset(floor: Revision): void {
    if (this.#isLoaded) this.#loading = Promise.withResolvers<void>()
    this.#isLoaded = false
    this.#state = OrderedTree.empty<E>(RUN_ENTRIES)
    this.#past.clear()
    this.#digest = 0
    this.#unreadable.clear()
    this.#changedAt = floor
    this.#ring.reset(floor)
    this.#readers.expireAll()
  }

  #setUnreadable(key: string, unreadable: Unreadable | undefined): void {
    this.#account(this.#unreadable.get(key), unreadable)
    if (unreadable === undefined) this.#unreadable.delete(key)
    else this.#unreadable.set(key, unreadable)
  }

  #account(before: Keyed | undefined, after: Keyed | undefined): void {
    if (this.#digest === undefined) return
    if (before !== undefined) this.#digest = (this.#digest - digestOf(before)) >>> 0
    if (after !== undefined) this.#digest = (this.#digest + digestOf(after)) >>> 0
  }

  /** The state before the change at `next` and all later ones. */
  #undoneTo(next: number): OrderedTree<E> {
    const undone = new Map<string, E | undefined>()
    for (let at = this.#ring.end - 1; at >= next; at--) {
      const { key, previous } = this.#ring.at(at) as Change<E>
      undone.set(key, previous)
    }
    let state = this.#state
    for (const [key, entry] of undone) state = entry === undefined ? state.delete(key) : state.set(key, entry)
    return state
  }
}

/** Which keys a slice is about: from `start` inclusive to `end` exclusive. */
export function boundsOf({ prefix, after }: Slice & { readonly prefix: string }): {
  readonly start: string
  readonly end: string
} {
  return { start: after === undefined ? prefix : `${after}\0`, end: prefixEnd(prefix) }
}

/** Measured: lists of 256 entries of 1 KiB, joined, are fast to make and fast to send. */
const RUN_ENTRIES = 256
/** Paged lists in progress at different revisions; a client past this many pays for undoing again. */
const PAST_STATES = 32

/** FNV-1a over key and revision: cheap, and different for states that differ by accident. */
export function digestOf({ key, modRevision }: Keyed): number {
  let hash = 0x811c9dc5
  for (let at = 0; at < key.length; at++) hash = Math.imul(hash ^ key.charCodeAt(at), 0x01000193)
  hash = Math.imul(hash ^ (modRevision >>> 0), 0x01000193)
  hash = Math.imul(hash ^ Math.floor(modRevision / 2 ** 32), 0x01000193)
  return (hash ^ (hash >>> 15)) >>> 0
}
