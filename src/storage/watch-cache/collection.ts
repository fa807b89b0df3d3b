/**
 * Collection: the current state of one resource (every key under one prefix), its recent changes, and its readers.
 * State at an earlier revision inside the window is the current state with later changes undone, so keeping it costs
 * nothing until somebody asks.
 */
import { prefixEnd, type Revision } from '../backend.ts'
import { type Keyed, type Page, Pages } from './pages.ts'
import { type Filter, type IndexOf, type Reader, Readers, type Sink } from './readers.ts'
import { type Change, Ring, type RingLimits } from './ring.ts'

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

export class Collection<E extends Keyed> {
  readonly prefix: string
  readonly #pages = new Pages<E>()
  readonly #ring: Ring<E>
  readonly #readers: Readers<E>
  /** The revision of the last change here, which is what a list's memo depends on. */
  #changedAt: Revision
  /** Sum over all entries of a hash of key and revision: equal sums mean equal states, at no cost for keeping it. */
  #digest = 0
  #loading = Promise.withResolvers<void>()
  #isLoaded = false
  /** Undone states, by revision, each with the ring position up to which it has undone. */
  readonly #past = new Map<Revision, { readonly undone: Map<string, E | undefined>; upTo: number }>()

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
    return this.#pages.size
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

  /** Equal to `digestOf` summed over the same keys at the same revisions. */
  get digest(): number {
    return this.#digest
  }

  get(key: string): E | undefined {
    return this.#pages.get(key)
  }

  /** Every page of the current state, for lists of the whole collection. */
  pages(): readonly Page<E>[] {
    return this.#pages.all()
  }

  /** The current entries of a slice, in order, in an array of the caller's own. */
  entries(slice: Slice = {}): E[] {
    const { start, end } = this.#bounds(slice)
    return this.#pages.slice(start, end)
  }

  /** The entries of a slice as they were at `revision`; undefined when that is no longer known here. */
  entriesAt(revision: Revision, slice: Slice = {}): E[] | undefined {
    if (revision >= this.#changedAt) return this.entries(slice)
    const undone = this.#undoneSince(revision)
    if (undone === undefined) return undefined
    const { start, end } = this.#bounds(slice)
    const unchanged = this.#pages.slice(start, end).filter((entry) => !undone.has(entry.key))
    const restored = [...undone.values()].filter(
      (entry) => entry !== undefined && entry.key >= start && entry.key < end,
    )
    return restored.length === 0 ? unchanged : [...unchanged, ...(restored as E[])].sort(byKey)
  }

  /** Undefined when changes after `revision` are no longer all known: the watch is too old. */
  watch(filter: Filter<E>, revision: Revision, sink: Sink<E>): Reader | undefined {
    return this.#readers.open(filter, revision, sink)
  }

  /** A key that the first listing found. Not a change: nobody watches yet. */
  load(entry: E): void {
    this.#account(this.#pages.set(entry), entry)
  }

  /** The state is whole. */
  loaded(): void {
    this.#isLoaded = true
    this.#loading.resolve()
  }

  /** A change from before the first listing, so that watches may start from earlier revisions than this cache. */
  remember(change: Change<E>): void {
    this.#ring.push(change)
  }

  apply(change: Omit<Change<E>, 'previous' | 'memo' | 'decisions'>): void {
    const { key, entry } = change
    const previous = entry === undefined ? this.#pages.delete(key) : this.#pages.set(entry)
    if (entry === undefined && previous === undefined) return
    this.#account(previous, entry)
    const whole: Change<E> = { ...change, previous, memo: new Map(), decisions: new Map() }
    this.#changedAt = change.revision
    this.#ring.push(whole)
    this.#readers.deliver(whole)
  }

  /** Lets go of changes and past states older than the window. */
  expire(nowMs: number): void {
    this.#ring.expire(nowMs)
    for (const revision of this.#past.keys()) if (revision < this.#ring.floor) this.#past.delete(revision)
  }

  /** Throws the state away; readers are told that they have lost their place. `load` fills it anew. */
  reset(floor: Revision): void {
    if (this.#isLoaded) this.#loading = Promise.withResolvers<void>()
    this.#isLoaded = false
    this.#pages.clear()
    this.#past.clear()
    this.#digest = 0
    this.#changedAt = floor
    this.#ring.reset(floor)
    this.#readers.expireAll()
  }

  #account(before: E | undefined, after: E | undefined): void {
    if (before !== undefined) this.#digest = (this.#digest - digestOf(before)) >>> 0
    if (after !== undefined) this.#digest = (this.#digest + digestOf(after)) >>> 0
  }

  #bounds({ prefix = this.prefix, after }: Slice): { readonly start: string; readonly end: string } {
    return { start: after === undefined ? prefix : `${after}\0`, end: prefixEnd(prefix) }
  }

  /** What each key changed since `revision` held at it. Brought up to date by what was applied since it was last asked. */
  #undoneSince(revision: Revision): Map<string, E | undefined> | undefined {
    const first = this.#ring.after(revision)
    if (first === undefined) return undefined
    const past = this.#past.get(revision) ?? { undone: new Map<string, E | undefined>(), upTo: first }
    for (; past.upTo < this.#ring.end; past.upTo++) {
      const change = this.#ring.at(past.upTo)
      if (change === undefined) return undefined
      if (!past.undone.has(change.key)) past.undone.set(change.key, change.previous)
    }
    this.#past.set(revision, past)
    if (this.#past.size > PAST_STATES) this.#past.delete(this.#past.keys().next().value ?? revision)
    return past.undone
  }
}

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

function byKey(a: Keyed, b: Keyed): number {
  return a.key < b.key ? -1 : a.key > b.key ? 1 : 0
}
