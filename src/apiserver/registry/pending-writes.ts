/**
 * Remembers objects whose write was sent to the backend. The watch cache takes these objects for its entries and need
 * not parse the server's own writes.
 */
import type { KeyValue, Revision } from '#storage/backend.ts'

import type { Entry } from './entry.ts'

export interface OutgoingWrite {
  readonly key: string
  /** The bytes for the backend. */
  readonly value: Uint8Array
  readonly make: (revision: Revision) => Entry
}

/** Cleared at the end: the map's table keeps deleted records for a while, and must not keep their objects. */
export interface PendingWrite {
  readonly key: string
  write: OutgoingWrite | undefined
  entry: Entry | undefined
  /** True if the writer has ended it. */
  isOver: boolean
}

export class PendingWrites {
  /** The last write of each key. Removed when the cache has received it, or when it failed. */
  readonly #pending = new Map<string, PendingWrite>()

  /** Called before a write is sent. The caller must call `end` for every result. */
  begin(write: OutgoingWrite): PendingWrite {
    const pending: PendingWrite = { key: write.key, write, entry: undefined, isOver: false }
    this.#pending.set(write.key, pending)
    return pending
  }

  /** `revision` of the write, undefined if it failed; returns its entry. */
  end(pending: PendingWrite, { make }: OutgoingWrite, revision: Revision | undefined): Entry | undefined {
    const entry = revision === undefined ? undefined : entryAt(pending, make, revision)
    pending.isOver = true
    const isWaiting = this.#pending.get(pending.key) === pending
    if (isWaiting && revision === undefined) this.#pending.delete(pending.key)
    if (!isWaiting || revision === undefined) empty(pending)
    return entry
  }

  /** For the cache: the entry of these bytes, if they were just written here. */
  takeEntry({ key, value, modRevision }: KeyValue): Entry | undefined {
    const pending = this.#pending.get(key)
    const write = pending?.write
    if (pending === undefined || write === undefined || Buffer.compare(write.value, value) !== 0) return undefined
    this.#pending.delete(key)
    const entry = entryAt(pending, write.make, modRevision)
    if (pending.isOver) empty(pending)
    return entry
  }
}

function entryAt(pending: PendingWrite, make: OutgoingWrite['make'], revision: Revision): Entry {
  if (pending.entry?.modRevision !== revision) pending.entry = make(revision)
  return pending.entry
}

function empty(pending: PendingWrite): void {
  pending.write = pending.entry = undefined
}
