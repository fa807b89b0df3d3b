/**
 * Types of the messages between the threads of the sqlite backend. Commits and results are flat arrays, because cloning
 * objects by the thousand is slow.
 */
import type { KeyValue, LeaseId, Revision, Write } from '../backend.ts'
import type { CommitTime } from '../commit-times.ts'
import type { PlainError } from './failures.ts'

export interface WriterSettings {
  readonly role: 'writer'
  readonly file: string
  /** Refuses to store more than this. */
  readonly quotaBytes: number
  /** Reserved disk space, released when the disk is full so that deletes can go on. */
  readonly ballastBytes: number
}

export interface ReaderSettings {
  readonly role: 'reader'
  readonly file: string
}

/** Four slots per write: key, value, expected (-1: no guard), lease. */
export type FlatWrites = (string | Uint8Array | number | null)[]

/** Four slots per item: modRevision (0: absent, the rest is filler), createRevision, lease, value. */
export type FlatItems = readonly (Uint8Array | number | null)[]

/** Executed in order of arrival. */
export type Operation =
  | readonly ['commit', FlatWrites]
  | readonly ['grant', LeaseId, ttlMs: number]
  | readonly ['revoke', LeaseId]
  | readonly ['compact', Revision]

/** Durable when it arrives. In order of the operations. */
export type Result =
  | readonly ['commit', ok: boolean, Revision, FlatItems]
  | readonly ['done']
  | readonly ['revoked', readonly Deletion[]]
  | readonly ['error', PlainError]

/** One key that was deleted with its lease. */
export type Deletion = readonly [Revision, KeyValue]

/** The values of all commits in one transferred buffer; each slot has the number of its bytes. */
export interface Operations {
  readonly type: 'operations'
  readonly operations: readonly Operation[]
  /** The clock of the store when they were sent. */
  readonly atMs: number
  readonly values: Uint8Array<ArrayBuffer>
}

export type ToWriter =
  | Operations
  /** Time for a step of housekeeping. */
  | { readonly type: 'upkeep' }
  /** A read while there is no reader: see threads.ts. */
  | { readonly type: 'read'; readonly call: ReaderCall }
  /** The reader has copied most of the write-ahead log into the database: copy the rest. */
  | { readonly type: 'finish-checkpoint' }
  | { readonly type: 'close' }

export type FromWriter =
  | { readonly type: 'ready'; readonly state: StoreState }
  | { readonly type: 'failed'; readonly error: PlainError }
  | { readonly type: 'results'; readonly results: readonly Result[]; readonly atMs: number }
  | { readonly type: 'read'; readonly message: FromCall }
  /** The current problem of the store; undefined when it is solved. */
  | { readonly type: 'trouble'; readonly error: PlainError | undefined }
  /** The write-ahead log is large enough for a checkpoint. */
  | { readonly type: 'wants-checkpoint' }
  | { readonly type: 'log'; readonly message: string }

/** The state of an opened store for the main thread. */
export interface StoreState {
  readonly revision: Revision
  readonly compactedRevision: Revision
  readonly leases: readonly (readonly [LeaseId, ttlMs: number])[]
  readonly times: readonly CommitTime[]
  /** Every row was verified while opening. */
  readonly isChecked: boolean
}

export interface RangeCall {
  readonly start: string
  /** Exclusive; never absent here. */
  readonly end: string
  readonly revision: Revision | undefined
  readonly limit: number
  readonly countOnly: boolean
  readonly keysOnly: boolean
}

export interface HistoryCall {
  readonly start: string
  readonly end: string
  readonly from: Revision
  readonly through: Revision
}

export interface ForkCall {
  readonly target: string
  readonly revision: Revision | undefined
}

/** The methods of the reader thread: arguments and answer of each. */
export interface ReaderMethods {
  readonly range: (call: RangeCall) => { readonly more: boolean; readonly count: number; readonly revision: Revision }
  readonly history: (call: HistoryCall) => { readonly revision: Revision }
  readonly sizes: () => { readonly sizeBytes: number; readonly sizeInUseBytes: number }
  readonly snapshot: (target: string) => Promise<Revision>
  readonly fork: (call: ForkCall) => Promise<Revision>
  readonly checkpoint: () => void
  /** Verifies rows from `fromId`; answers with the next id, 0 at the end. */
  readonly verify: (fromId: number) => number
}

export type ReaderMethod = keyof ReaderMethods

export interface ReaderCall {
  readonly id: number
  readonly method: ReaderMethod
  readonly argument: unknown
}

export type ToReader = ReaderCall | { readonly method: 'open' | 'close' }

export type FromReader = { readonly type: 'ready' } | { readonly type: 'failed'; readonly error: PlainError } | FromCall

export type FromCall =
  | { readonly type: 'part'; readonly id: number; readonly part: Part }
  | { readonly type: 'answer'; readonly id: number; readonly value: unknown }
  | { readonly type: 'error'; readonly id: number; readonly error: PlainError }

/** A part of an answer, sent before it. All values are in one transferred buffer. */
export interface Part {
  /**
   * Five slots per item, for an event four more for its previous value. A value is the number of its bytes, null is
   * none.
   */
  readonly flat: readonly unknown[]
  /** The values one after the other. */
  readonly values: Uint8Array<ArrayBuffer>
}

const NO_GUARD = -1

export function packWrites(writes: readonly Write[]): FlatWrites {
  const flat: (string | Uint8Array | number | null)[] = []
  for (const { key, value, expected, lease } of writes) flat.push(key, value, expected ?? NO_GUARD, lease ?? 0)
  return flat
}

/** Takes ownership of the operations. */
export function packOperations(operations: readonly Operation[], atMs: number): Operations {
  const values: Uint8Array[] = []
  let bytes = 0
  eachValue(operations, (value) => {
    if (!(value instanceof Uint8Array)) return value
    values.push(value)
    bytes += value.length
    return value.length
  })
  return { type: 'operations', operations, atMs, values: joinBytes(values, bytes) }
}

/** The inverse of packing. */
export function unpackOperations({ operations, values }: Operations): readonly Operation[] {
  const take = takingFrom(values)
  eachValue(operations, (bytes) => (typeof bytes === 'number' ? take(bytes) : bytes))
  return operations
}

function eachValue(operations: readonly Operation[], replace: (slot: FlatWrites[number]) => FlatWrites[number]): void {
  for (const [kind, flat] of operations) {
    if (kind !== 'commit') continue
    for (let at = 1; at < flat.length; at += 4) flat[at] = replace(flat[at] ?? null)
  }
}

/** Concatenated, in memory of exactly their size. */
export function joinBytes(parts: readonly Uint8Array[], bytes: number): Uint8Array<ArrayBuffer> {
  const joined = new Uint8Array(bytes)
  let at = 0
  for (const part of parts) {
    joined.set(part, at)
    at += part.length
  }
  return joined
}

/** Takes the values one by one out of the buffer. */
export function takingFrom(values: Uint8Array): (bytes: number) => Uint8Array {
  let at = 0
  return (bytes) => values.subarray(at, (at += bytes))
}

export function unpackWrites(flat: FlatWrites): Write[] {
  const writes: Write[] = []
  for (let at = 0; at < flat.length; at += 4) {
    const expected = flat[at + 2] as number
    const write = { key: flat[at] as string, value: flat[at + 1] as Uint8Array | null, lease: flat[at + 3] as LeaseId }
    writes.push(expected === NO_GUARD ? write : { ...write, expected })
  }
  return writes
}

export function packItems(items: readonly (KeyValue | undefined)[]): FlatItems {
  const flat: (Uint8Array | number | null)[] = []
  for (const item of items) {
    if (item === undefined) flat.push(0, 0, 0, null)
    else flat.push(item.modRevision, item.createRevision, item.lease, item.value)
  }
  return flat
}

export function unpackItem(flat: FlatItems, at: number, key: string): KeyValue | undefined {
  const modRevision = flat[4 * at] as Revision
  if (modRevision === 0) return undefined
  return {
    key,
    value: flat[4 * at + 3] as Uint8Array,
    createRevision: flat[4 * at + 1] as Revision,
    modRevision,
    lease: flat[4 * at + 2] as LeaseId,
  }
}
