/**
 * Writes on their way. The cache sees each of them come back as bytes, mostly before the writer hears that it is durable;
 * whoever is first makes the entry from the object at hand, and the other takes it. What was just written is not parsed.
 */
import type { KeyValue, Revision } from '#storage/backend.ts'

import type { Entry } from './entry.ts'

export interface Underway {
  readonly key: string
  /** As it is handed to the backend. */
  readonly value: Uint8Array
  readonly make: (revision: Revision) => Entry
}

/** Emptied when it is over: the table keeps places of those who have gone for a while, and must not keep their objects. */
export interface Pending {
  readonly key: string
  write: Underway | undefined
  entry: Entry | undefined
  /** The writer has heard of it. */
  isOver: boolean
}

export class WritesUnderway {
  /** By key; the last to begin counts. Each goes when the cache has seen it, or when it failed. */
  readonly #pending = new Map<string, Pending>()

  /** Before a write is sent off. Whoever begins one ends it, whatever becomes of it. */
  begin(write: Underway): Pending {
    const pending: Pending = { key: write.key, write, entry: undefined, isOver: false }
    this.#pending.set(write.key, pending)
    return pending
  }

  /** `revision` is that of the write, undefined when it did not come about; returns its entry. */
  end(pending: Pending, { make }: Underway, revision: Revision | undefined): Entry | undefined {
    const entry = revision === undefined ? undefined : entryAt(pending, make, revision)
    pending.isOver = true
    const isWaiting = this.#pending.get(pending.key) === pending
    if (isWaiting && revision === undefined) this.#pending.delete(pending.key)
    if (!isWaiting || revision === undefined) empty(pending)
    return entry
  }

  /** The entry of these bytes, if they were written here just now. For the cache. */
  pickUp({ key, value, modRevision }: KeyValue): Entry | undefined {
    const pending = this.#pending.get(key)
    const write = pending?.write
    if (pending === undefined || write === undefined || Buffer.compare(write.value, value) !== 0) return undefined
    this.#pending.delete(key)
    const entry = entryAt(pending, write.make, modRevision)
    if (pending.isOver) empty(pending)
    return entry
  }
}

function entryAt(pending: Pending, make: Underway['make'], revision: Revision): Entry {
  if (pending.entry?.modRevision !== revision) pending.entry = make(revision)
  return pending.entry
}

function empty(pending: Pending): void {
  pending.write = pending.entry = undefined
}
