/**
 * Ring: the recent changes of one collection, each with a unique position. A reader only has a position in the ring; if
 * the ring no longer has that position, the reader gets an error.
 */
import type { Revision } from '../backend.ts'

/** The part of an entry that the cache itself needs. */
export interface Keyed {
  readonly key: string
  readonly modRevision: Revision
  /** Its approximate memory. */
  readonly bytes?: number
}

/**
 * The effect of a change on a filter: an object that starts to match was added, one that stops matching was deleted.
 */
export type ChangeType = 'ADDED' | 'MODIFIED' | 'DELETED'

/** One change. `entry` is absent for a deletion, `previous` for a creation. */
export interface ChangeParts<E extends Keyed> {
  readonly revision: Revision
  readonly key: string
  readonly entry: E | undefined
  readonly previous: E | undefined
  /** When it was applied, for the window. */
  readonly atMs: number
}

/** With lazily allocated derived values. */
export class Change<E extends Keyed> implements ChangeParts<E> {
  readonly revision: Revision
  readonly key: string
  readonly entry: E | undefined
  readonly previous: E | undefined
  readonly atMs: number
  #memo: Map<string, unknown> | undefined
  #decisions: Map<string, ChangeType | 'none'> | undefined

  constructor({ revision, key, entry, previous, atMs }: ChangeParts<E>) {
    this.revision = revision
    this.key = key
    this.entry = entry
    this.previous = previous
    this.atMs = atMs
  }

  /** Values derived from this change, by name: frames made once and shared by all watchers. */
  get memo(): Map<string, unknown> {
    this.#memo ??= new Map()
    return this.#memo
  }

  /** By filter id: the effect of this change on each filter that has evaluated it. */
  get decisions(): Map<string, ChangeType | 'none'> {
    this.#decisions ??= new Map()
    return this.#decisions
  }
}

export interface RingLimits {
  /** Changes younger than this are kept, up to `maxChanges`. */
  readonly windowMs: number
  /** The limit for bursts: beyond it, the oldest changes are dropped whatever their age. */
  readonly maxChanges: number
  /** The same for the memory of replaced entries, which nothing else needs. */
  readonly maxBytes: number
}

export class Ring<E extends Keyed> {
  readonly #limits: RingLimits
  /** `#changes[0]` has position `#first`. Dropped ones are cut off in bulk, which is cheap. */
  #changes: Change<E>[] = []
  #dropped = 0
  #first = 0
  /** The size of all replaced entries. */
  #bytes = 0
  /** Every change after this revision is here. */
  #floor: Revision

  constructor(limits: RingLimits, floor: Revision) {
    this.#limits = limits
    this.#floor = floor
  }

  /** A watch may start from this revision or a later one. */
  get floor(): Revision {
    return this.#floor
  }

  /** The position of the oldest change that is still here. */
  get first(): number {
    return this.#first + this.#dropped
  }

  /** The position the next change will get. */
  get end(): number {
    return this.#first + this.#changes.length
  }

  push(change: Change<E>): void {
    this.#changes.push(change)
    this.#bytes += change.previous?.bytes ?? 0
    if (this.end - this.first > this.#limits.maxChanges) this.#drop()
    while (this.#bytes > this.#limits.maxBytes) this.#drop()
  }

  /** Drops changes older than the window. */
  expire(nowMs: number): void {
    for (let oldest = this.#changes[this.#dropped]; oldest !== undefined; oldest = this.#changes[this.#dropped]) {
      if (oldest.atMs + this.#limits.windowMs > nowMs) return
      this.#drop()
    }
  }

  /** The change at `position`; undefined if it was dropped or is in the future. */
  at(position: number): Change<E> | undefined {
    return position < this.first ? undefined : this.#changes[position - this.#first]
  }

  /** The position of the first change after `revision`; undefined if that part was dropped. */
  after(revision: Revision): number | undefined {
    if (revision < this.#floor) return undefined
    let low = this.#dropped
    let high = this.#changes.length
    while (low < high) {
      const middle = (low + high) >> 1
      if ((this.#changes[middle] as Change<E>).revision <= revision) low = middle + 1
      else high = middle
    }
    return this.#first + low
  }

  /** Clears everything: history before `floor` is unknown. All positions are lost. */
  reset(floor: Revision): void {
    this.#first = this.end + 1
    this.#changes = []
    this.#dropped = 0
    this.#bytes = 0
    this.#floor = floor
  }

  #drop(): void {
    const oldest = this.#changes[this.#dropped]
    if (oldest === undefined) return
    this.#floor = oldest.revision
    this.#bytes -= oldest.previous?.bytes ?? 0
    this.#dropped++
    if (this.#dropped * 2 < this.#changes.length || this.#dropped < 64) return
    this.#changes = this.#changes.slice(this.#dropped)
    this.#first += this.#dropped
    this.#dropped = 0
  }
}
