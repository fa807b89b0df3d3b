/**
 * Records the operations of all clients. Times are ticks of one counter, which orders all starts and ends exactly,
 * because the clients share a process. Milliseconds are recorded too, to check the durations of leases.
 */
import { performance } from 'node:perf_hooks'

import { type Revision, StorageError, type StorageErrorCode } from '#storage/backend.ts'

import { type Batch, type Calls, type Method, NotSentError, type Store, type WatchRequest } from './store.ts'

/** One call and its outcome. `end` is Infinity if it is unknown whether the call took effect. */
export type Operation = { [M in Method]: OperationOf<M> }[Method]

export interface OperationOf<M extends Method> {
  readonly client: number
  readonly method: M
  readonly argument: Calls[M]['argument']
  readonly start: number
  readonly startMs: number
  end: number
  endMs: number
  /** Absent when it failed. */
  result?: Calls[M]['result']
  error?: { readonly code: StorageErrorCode; readonly message: string }
}

export interface SeenBatch extends Batch {
  readonly tick: number
  readonly ms: number
}

export interface WatchRecord {
  readonly client: number
  readonly request: WatchRequest
  readonly opened: number
  readonly batches: SeenBatch[]
  /** Why it ended, unless the client ended it. */
  error?: { readonly code: StorageErrorCode; readonly message: string }
  /** Set when it should have come this far and did not in time. */
  stuckBefore?: Revision
}

export interface History {
  readonly operations: readonly Operation[]
  readonly watches: readonly WatchRecord[]
}

/** Failures after which the write has certainly not happened. */
const DEFINITE: ReadonlySet<StorageErrorCode> = new Set<StorageErrorCode>([
  'compacted',
  'future-revision',
  'no-space',
  'corrupt',
  'too-large',
  'lease-not-found',
])

export class Recorder implements History {
  readonly operations: Operation[] = []
  readonly watches: WatchRecord[] = []
  readonly #store: Store
  readonly #timeoutMs: number
  #ticks = 0

  constructor(store: Store, timeoutMs: number) {
    this.#store = store
    this.#timeoutMs = timeoutMs
  }

  /** Asks and writes down; undefined when it failed. Throws NotSentError only. */
  async call<M extends Method>(
    client: number,
    method: M,
    argument: Calls[M]['argument'],
  ): Promise<Calls[M]['result'] | undefined> {
    const start = ++this.#ticks
    const operation: OperationOf<M> = {
      client,
      method,
      argument,
      start,
      startMs: performance.now(),
      end: Infinity,
      endMs: Infinity,
    }
    try {
      const result = await this.#inTime(this.#store.call(method, argument))
      operation.result = result
      this.#finish(operation)
      this.operations.push(operation as Operation)
      return result
    } catch (cause) {
      if (cause instanceof NotSentError) throw cause
      if (!(cause instanceof StorageError)) throw cause
      operation.error = { code: cause.code, message: cause.message }
      if (DEFINITE.has(cause.code)) this.#finish(operation)
      this.operations.push(operation as Operation)
      return undefined
    }
  }

  /**
   * Treats damage that was reported since operation `count` as an unknown outcome, because a disk without power
   * returns wrong data.
   */
  doubt(count: number): void {
    for (const operation of this.operations.slice(count)) {
      if (operation.error?.code !== 'corrupt') continue
      operation.error = { ...operation.error, code: 'unavailable' }
      operation.end = operation.endMs = Infinity
    }
  }

  /** Follows a watch and writes it down; the caller sees each batch as it comes. */
  async *watch(
    client: number,
    request: WatchRequest,
    signal: AbortSignal,
  ): AsyncGenerator<Batch, WatchRecord, undefined> {
    const record: WatchRecord = { client, request, opened: ++this.#ticks, batches: [] }
    this.watches.push(record)
    try {
      for await (const batch of this.#store.watch(request, signal)) {
        record.batches.push({ ...batch, tick: ++this.#ticks, ms: performance.now() })
        yield batch
      }
    } catch (cause) {
      if (cause instanceof NotSentError) this.watches.splice(this.watches.indexOf(record), 1)
      else if (!(cause instanceof StorageError)) throw cause
      else record.error = { code: cause.code, message: cause.message }
    }
    return record
  }

  #finish(operation: { end: number; endMs: number }): void {
    operation.end = ++this.#ticks
    operation.endMs = performance.now()
  }

  async #inTime<T>(answer: Promise<T>): Promise<T> {
    const { promise, reject } = Promise.withResolvers<never>()
    const timer = setTimeout(
      () => reject(new StorageError('timeout', `No answer within ${this.#timeoutMs} ms`)),
      this.#timeoutMs,
    )
    try {
      return await Promise.race([answer, promise])
    } finally {
      clearTimeout(timer)
    }
  }
}

export function isUnknown(operation: Operation): boolean {
  return operation.end === Infinity
}
