/**
 * Sequence: checks that a watch of the whole keyspace tells every revision, whole, once and in order. Every change
 * takes the next revision, so over the whole keyspace revisions have no gaps, and a lost event (etcd #17529, #18089,
 * #19179) shows as one. etcd splits a revision over two messages only when it says so (`fragment`, since 3.4), so the
 * last revision of an answer need not be held back until the next one comes, which on a quiet store would be never.
 */
import type { KeyValue, Revision, StorageEvent, WatchBatch } from '../backend.ts'
import { exactCopy } from '../write-check.ts'
import { EVENT_TYPE, type EtcdEvent, type EtcdKeyValue, type WatchResponse } from './messages.ts'

/**
 * - `gap`: revisions are missing; another member, or the same one asked again, may have them
 * - `torn`: a revision that has been handed on was not complete
 * - `older`: what was delivered long ago came again in the middle of the stream
 * - `bare`: the previous value is missing, because it has been compacted
 */
export type SequenceFault = 'gap' | 'torn' | 'older' | 'bare'

export class SequenceError extends Error {
  override readonly name = 'SequenceError'
  readonly fault: SequenceFault
  /** The first revision that is sound again, as far as is known. */
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

/** A new store is at revision 1, which no change has taken. */
const FIRST_CHANGE = 2

export class Sequence {
  /** The next revision to hand on. */
  #next: Revision
  /** Changes of revision `#next` that wait for the rest of a message in fragments. */
  #held: EtcdEvent[] = []
  /** The keys of revision `#next - 1`, to tell its repetition from its rest. */
  #lastKeys: ReadonlySet<string> | undefined
  /** Whether something new has come since the stream was opened. */
  #hasBegun = false

  /** `next`: the first revision wanted. */
  constructor(next: Revision) {
    this.#next = Math.max(FIRST_CHANGE, next)
  }

  get next(): Revision {
    return this.#next
  }

  /** The stream was opened anew from `next` on. */
  reopen(): void {
    this.#held = []
    this.#hasBegun = false
  }

  /** The revisions an answer completes, and what is wrong with what comes after them. */
  push(response: Pick<WatchResponse, 'events' | 'fragment'>): Pushed {
    const batches: WatchBatch[] = []
    try {
      for (const event of response.events) {
        const revision = Number(event.kv?.modRevision ?? 0)
        if (revision > this.#next && this.#held.length > 0) batches.push(this.#complete())
        if (revision < this.#next) this.#checkOld(event, revision)
        else if (revision > this.#next) throw this.#gap(revision)
        else this.#held.push(event)
      }
      if (!response.fragment && this.#held.length > 0) batches.push(this.#complete())
      return { batches, fault: undefined }
    } catch (error) {
      if (error instanceof SequenceError) return { batches, fault: error }
      throw error
    }
  }

  #complete(): WatchBatch {
    const held = this.#held
    const batch = { revision: this.#next, events: held.map((event) => toStorageEvent(event, this.#next)) }
    this.#held = []
    this.#lastKeys = new Set(held.map((event) => event.kv?.key ?? ''))
    this.#hasBegun = true
    this.#next++
    return batch
  }

  /**
   * What comes again is passed over. At the start of a stream that is expected: a member that is still behind sends
   * what it catches up on (etcd #20221).
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
  if (type === EVENT_TYPE.delete) {
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
 * Copies the value: what arrived with it is let go. A lease somebody else granted may have more digits than a number
 * holds exactly; such an id is good for showing only.
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
