/**
 * Sequence: checks that a watch of the whole keyspace delivers every revision once, in order and without a gap. A gap
 * reveals events that etcd has lost (etcd #17529, #18089, #19179).
 */
import {
  type Event as EtcdEvent,
  EventType,
  type KeyValue as EtcdKeyValue,
  type WatchResponse,
} from '#apis/wire/etcd.ts'

import type { KeyValue, Revision, StorageEvent, WatchBatch } from '../backend.ts'
import { exactCopy } from '../write-check.ts'

/**
 * - `gap`: revisions are missing; another member, or a retry, may have them
 * - `torn`: an emitted revision was not complete
 * - `older`: an old revision was repeated in the middle of the stream
 * - `bare`: the previous value is missing, because it has been compacted
 */
export type SequenceFault = 'gap' | 'torn' | 'older' | 'bare'

export class SequenceError extends Error {
  override readonly name = 'SequenceError'
  readonly fault: SequenceFault
  /** The first sound revision after the fault, as far as known. */
  readonly resumeAt: Revision

  constructor(fault: SequenceFault, message: string, resumeAt: Revision) {
    super(message)
    this.fault = fault
    this.resumeAt = resumeAt
  }
}

export interface Pushed {
  readonly batches: readonly WatchBatch[]
  readonly fault: SequenceError | undefined
}

/** A new store is at revision 1, which has no change. */
const FIRST_CHANGE = 2

export class Sequence {
  /** The next revision to emit. */
  #next: Revision
  /** Changes of revision `#next` that wait for further fragments. */
  #pending: EtcdEvent[] = []
  /** The keys of revision `#next - 1`, to distinguish its repetition from its remainder. */
  #lastKeys: ReadonlySet<string> | undefined
  /** True if something new has arrived since the stream was opened. */
  #hasBegun = false

  /** `next`: the first revision wanted. */
  constructor(next: Revision) {
    this.#next = Math.max(FIRST_CHANGE, next)
  }

  get next(): Revision {
    return this.#next
  }

  /** The stream was reopened from `next` on. */
  reopen(): void {
    this.#pending = []
    this.#hasBegun = false
  }

  /** The revisions that an answer completes, and the fault after them, if any. */
  push(response: Pick<WatchResponse, 'events' | 'fragment'>): Pushed {
    const batches: WatchBatch[] = []
    try {
      for (const event of response.events) {
        const revision = Number(event.kv?.modRevision ?? 0)
        if (revision > this.#next && this.#pending.length > 0) batches.push(this.#complete())
        if (revision < this.#next) this.#checkOld(event, revision)
        else if (revision > this.#next) throw this.#gap(revision)
        else this.#pending.push(event)
      }
      if (!response.fragment && this.#pending.length > 0) batches.push(this.#complete())
      return { batches, fault: undefined }
    } catch (error) {
      if (error instanceof SequenceError) return { batches, fault: error }
      throw error
    }
  }

  #complete(): WatchBatch {
    const pending = this.#pending
    const batch = { revision: this.#next, events: pending.map((event) => toStorageEvent(event, this.#next)) }
    this.#pending = []
    this.#lastKeys = new Set(pending.map((event) => event.kv?.key ?? ''))
    this.#hasBegun = true
    this.#next++
    return batch
  }

  /**
   * Skips repetitions. They are expected at the start of a stream: a lagging member sends what it catches up on (etcd
   * #20221).
   */
  #checkOld(event: EtcdEvent, revision: Revision): void {
    const key = event.kv?.key ?? ''
    if (revision === this.#next - 1 && this.#lastKeys !== undefined && !this.#lastKeys.has(key)) {
      throw new SequenceError('torn', `etcd split revision ${revision} over two answers`, this.#next)
    }
    if (this.#hasBegun && revision < this.#next - 1) {
      throw new SequenceError('older', `etcd sent revision ${revision} again after ${this.#next - 1}`, this.#next)
    }
  }

  #gap(revision: Revision): SequenceError {
    const missing = revision - 1 === this.#next ? `${this.#next}` : `${this.#next} to ${revision - 1}`
    return new SequenceError('gap', `etcd left out revision ${missing}`, revision)
  }
}

function toStorageEvent({ type, kv, prevKv }: EtcdEvent, revision: Revision): StorageEvent {
  const { key, createRevision, value, lease } = kv as EtcdKeyValue
  const previous = prevKv && toKeyValue(prevKv)
  if (type === EventType.DELETE) {
    if (previous === undefined) throw bare(key, revision)
    const { createRevision, lease, value } = previous
    return { type: 'delete', key, value, createRevision, modRevision: revision, lease, previous }
  }
  const change = { type: 'put' as const, key, value: exactCopy(value), modRevision: revision, lease: Number(lease) }
  if (previous !== undefined) return { ...change, createRevision: Number(createRevision), previous }
  if (Number(createRevision) !== revision) throw bare(key, revision)
  return { ...change, createRevision: revision }
}

function bare(key: string, revision: Revision): SequenceError {
  return new SequenceError('bare', `etcd has compacted what "${key}" held before revision ${revision}`, revision + 1)
}

/**
 * Copies the value, so that the rest of the message can be freed. Another client's lease may exceed a number's
 * precision; such an id is only for display.
 */
export function toKeyValue({ key, value, createRevision, modRevision, lease }: EtcdKeyValue): KeyValue {
  return {
    key,
    value: exactCopy(value),
    createRevision: Number(createRevision),
    modRevision: Number(modRevision),
    lease: Number(lease),
  }
}
