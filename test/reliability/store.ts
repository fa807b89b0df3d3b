/**
 * The interface through which the reliability harness calls a store. Values are texts and each call is one message. So
 * the same traffic can run in this process or against a child process that will be killed. `via: 'cache'` reads through
 * the watch cache of that process, which has the same guarantees.
 */
import { prefixEnd, type KeyValue, type LeaseId, type Revision } from '#storage/backend.ts'
import type { RepairEvent } from '#storage/watch-cache/watch-cache.ts'

export type Via = 'backend' | 'cache'

export interface Item {
  readonly key: string
  readonly value: string
  readonly create: Revision
  readonly mod: Revision
  readonly lease: LeaseId
}

export interface TextWrite {
  readonly key: string
  readonly value: string | null
  readonly expected?: Revision
  readonly lease?: LeaseId
}

export interface Change {
  readonly type: 'put' | 'delete'
  readonly key: string
  readonly value: string
  readonly create: Revision
  readonly mod: Revision
  readonly lease: LeaseId
  readonly previous?: Item
}

export interface Batch {
  readonly revision: Revision
  readonly events: readonly Change[]
}

export interface Range {
  readonly start: string
  readonly end?: string
  readonly revision?: Revision
  readonly limit?: number
  readonly via: Via
}

export interface Listed {
  readonly items: readonly Item[]
  readonly more: boolean
  readonly count: number
  readonly revision: Revision
}

export interface Committed {
  readonly ok: boolean
  readonly revision: Revision
  /** The previous or current items: the backend's `previous` and `current`. */
  readonly items: readonly (Item | null)[]
}

/** The calls of the store with the types of argument and result. */
export interface Calls {
  commit: { argument: readonly TextWrite[]; result: Committed }
  range: { argument: Range; result: Listed }
  revision: { argument: null; result: Revision }
  compact: { argument: Revision; result: null }
  grant: { argument: number; result: LeaseId }
  renew: { argument: LeaseId; result: null }
  revoke: { argument: LeaseId; result: null }
  status: { argument: null; result: Status }
}

export type Method = keyof Calls

export interface Status {
  readonly compacted: Revision
  readonly ok: boolean
  readonly message: string
  readonly repairs: readonly RepairEvent[]
}

export interface WatchRequest {
  readonly start: string
  readonly end?: string
  readonly from?: Revision
  readonly via: Via
}

export interface Store {
  /** Rejects with StorageError: `unavailable` when the connection broke, with NotSentError when there was none. */
  call<M extends Method>(method: M, argument: Calls[M]['argument']): Promise<Calls[M]['result']>
  watch(request: WatchRequest, signal: AbortSignal): AsyncIterable<Batch>
}

/** The call was not sent, so it had no effect. */
export class NotSentError extends Error {
  override readonly name = 'NotSentError'
}

/** The whole of what the traffic writes to, and the collections the cache keeps of it. */
export const ROOT = '/registry/'
export const COLLECTIONS = ['/registry/things/', '/registry/others/'] as const

export function toItem({ key, value, createRevision, modRevision, lease }: KeyValue): Item {
  return { key, value: Buffer.from(value).toString(), create: createRevision, mod: modRevision, lease }
}

/** The range of all keys under a prefix. */
export function under(prefix: string): { readonly start: string; readonly end: string } {
  return { start: prefix, end: prefixEnd(prefix) }
}
