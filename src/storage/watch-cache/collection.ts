/**
 * Collection: the current state of one resource in the watch cache, its recent changes and its readers. The state is an
 * immutable tree, so a reader can keep it while changes continue.
 */
import { prefixEnd, type Revision } from '../backend.ts'
import { OrderedTree } from '../ordered-tree.ts'
import { type Filter, type IndexOf, type Reader, Readers, type Sink } from './readers.ts'
import { Change, type ChangeParts, type Keyed, Ring, type RingLimits } from './ring.ts'

export interface CollectionOptions<E extends Keyed> {
  readonly prefix: string
  readonly indexOf: IndexOf<E>
  readonly limits: RingLimits
  /** The first revision of the state. */
  readonly floor: Revision
  readonly appliedRevision: () => Revision
}

/** A part of a collection, in key order. */
export interface Slice {
  /** Only keys under this prefix (a namespace); absent: all. */
  readonly prefix?: string
  /** Only keys after this one: the end of the previous page. */
  readonly after?: string
}

/** A stored value that cannot be decoded. */
export interface Unreadable extends Keyed {
  readonly error: unknown
}

export class Collection<E extends Keyed> {
  readonly prefix: string
  #state = OrderedTree.empty<E>(RUN_ENTRIES)
  readonly #ring: Ring<E>
  readonly #readers: Readers<E>
  /** The revision of the last change here, on which cached lists depend. */
  #changedAt: Revision
  /** Sum over all entries of a hash of key and revision: equal sums mean equal states. Undefined: to be computed. */
  #digest: number | undefined = 0
  #loading = Promise.withResolvers<void>()
  #isLoaded = false
  /** Undecodable values by key: they are not entries, but readers must learn that they exist. */
  readonly #unreadable = new Map<string, Unreadable>()
  /** Earlier states, by the ring position of the change that ended each. */
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

  /** False while the state is being listed; reads must then wait for `ready`. */
  get isLoaded(): boolean {
    return this.#isLoaded
  }

  /** Resolves when the state is complete. */
  get ready(): Promise<void> {
    return this.#loading.promise
  }

  get size(): number {
    return this.#state.size
  }

  get readers(): number {
    return this.#readers.count
  }

  /** The revision of the last change: anything derived from the whole collection is valid until it changes. */
  get changedAt(): Revision {
    return this.#changedAt
  }

  /** The oldest revision whose state and changes are known here. */
  get floor(): Revision {
    return this.#ring.floor
  }

  /** The reason why the state lacks this key, or a key with this prefix; undefined if it lacks none. */
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

  /** The current state. It is immutable. */
  get state(): OrderedTree<E> {
    return this.#state
  }

  /** The current entries of a slice, in order, in a new array. */
  entries(slice: Slice = {}): E[] {
    const { start, end } = boundsOf({ prefix: this.prefix, ...slice })
    return [...this.#state.slices(start, end)].flat()
  }

  /**
   * The state at `revision`; undefined if it is no longer known. Cached, because the reader will request the next part.
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

  /** Undefined if changes after `revision` are incomplete: the watch is too old. */
  watch(filter: Filter<E>, revision: Revision, sink: Sink<E>): Reader | undefined {
    return this.#readers.open(filter, revision, sink)
  }

  /** The complete first listing, in key order. It is no change, because there are no watchers yet. */
  load(entries: readonly E[], unreadable: readonly Unreadable[] = []): void {
    this.#state = OrderedTree.fromSorted(entries, ({ key }) => key, RUN_ENTRIES)
    this.#unreadable.clear()
    for (const one of unreadable) this.#unreadable.set(one.key, one)
    this.#digest = undefined
  }

  /** The state is complete. */
  loaded(): void {
    this.#isLoaded = true
    this.#loading.resolve()
  }

  /** A change from before the first listing, so that watches and lists may start before this cache. */
  remember(change: ChangeParts<E>): void {
    this.#changedAt = change.revision
    this.#ring.push(new Change(change))
  }

  /** The key has an undecodable value: watchers see a deletion. */
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
   * Drops changes and past states older than the window. States before `horizon` are then unknown, even without changes
   * since: a paged list gets the error that it is too old, as from upstream's store.
   */
  expire(nowMs: number, horizon: Revision): void {
    this.#horizon = horizon
    this.#ring.expire(nowMs)
    for (const next of this.#past.keys()) if (next < this.#ring.first) this.#past.delete(next)
  }

  /** Discards the state; readers lose their position and get an error. `load` fills it again. */
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

/** The keys of a slice: from `start` inclusive to `end` exclusive. */
export function boundsOf({ prefix, after }: Slice & { readonly prefix: string }): {
  readonly start: string
  readonly end: string
} {
  return { start: after === undefined ? prefix : `${after}\0`, end: prefixEnd(prefix) }
}

/** Measured: lists of 256 entries of 1 KiB, joined, are fast to make and fast to send. */
const RUN_ENTRIES = 256
/** Paged lists in progress at different revisions; beyond this number, states are computed again. */
const PAST_STATES = 32

/** FNV-1a over key and revision: cheap, and different for states that differ by accident. */
export function digestOf({ key, modRevision }: Keyed): number {
  let hash = 0x811c9dc5
  for (let at = 0; at < key.length; at++) hash = Math.imul(hash ^ key.charCodeAt(at), 0x01000193)
  hash = Math.imul(hash ^ (modRevision >>> 0), 0x01000193)
  hash = Math.imul(hash ^ Math.floor(modRevision / 2 ** 32), 0x01000193)
  return (hash ^ (hash >>> 15)) >>> 0
}
