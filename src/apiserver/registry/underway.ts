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

interface Pending extends Underway {
  entry: Entry | undefined
}

export class WritesUnderway {
  /** By key; the last to begin counts. Each goes when the cache has seen it, or when it failed. */
  readonly #pending = new Map<string, Pending>()

  /** Runs a write that resolves to its revision, or to undefined when it did not come about; returns its entry. */
  async run(write: Underway, commit: () => Promise<Revision | undefined>): Promise<Entry | undefined> {
    const pending: Pending = { ...write, entry: undefined }
    this.#pending.set(write.key, pending)
    let revision: Revision | undefined
    try {
      revision = await commit()
    } finally {
      if (revision === undefined) this.#forget(pending)
    }
    return revision === undefined ? undefined : entryAt(pending, revision)
  }

  /** The entry of these bytes, if they were written here just now. For the cache. */
  pickUp({ key, value, modRevision }: KeyValue): Entry | undefined {
    const pending = this.#pending.get(key)
    if (pending === undefined || Buffer.compare(pending.value, value) !== 0) return undefined
    this.#pending.delete(key)
    return entryAt(pending, modRevision)
  }

  #forget(pending: Pending): void {
    if (this.#pending.get(pending.key) === pending) this.#pending.delete(pending.key)
  }
}

function entryAt(pending: Pending, revision: Revision): Entry {
  if (pending.entry?.modRevision !== revision) pending.entry = pending.make(revision)
  return pending.entry
}
