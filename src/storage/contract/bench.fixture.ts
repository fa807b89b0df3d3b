/** The fixtures of the tests of a backend: a separate prefix, watches to be read step by step, and assertions. */
import assert from 'node:assert/strict'
import type { TestContext } from 'node:test'

import {
  prefixEnd,
  StorageError,
  type Backend,
  type CommitResult,
  type KeyValue,
  type RangeResult,
  type Revision,
  type StorageEvent,
  type StorageErrorCode,
  type WatchBatch,
  type Write,
} from '../backend.ts'

export interface BackendUnderTest {
  readonly backend: Backend
  /** Disposes it after the test; absent: the suite closes the backend. */
  readonly release?: () => Promise<void>
  /** Advances the backend's time: moves its virtual clock, or sleeps. */
  readonly pass: (ms: number) => Promise<void>
  /** A time to live that the backend observes precisely enough: alive after half of it, gone after twice. */
  readonly ttlMs: number
  /** An idle watch receives progress within this time; absent: the backend cannot promise it (etcd before 3.4.31). */
  readonly progressMs?: number
  /** Opens a snapshot of this backend as another store, which the suite closes. Absent: external tools do it. */
  readonly openSnapshot?: (file: string) => Promise<Backend>
}

export type Ok = Extract<CommitResult, { ok: true }>
export type Refused = Extract<CommitResult, { ok: false }>

let prefixes = 0

/** The fixtures of each test. */
export interface Bench extends BackendUnderTest {
  readonly prefix: string
  readonly end: string
  readonly key: (name: string | number) => string
  readonly put: (name: string | number, value?: string, extra?: Partial<Write>) => Promise<Ok>
  readonly remove: (name: string | number) => Promise<Ok>
  readonly list: (options?: { revision?: Revision; limit?: number; start?: string }) => Promise<RangeResult>
  /** A watch over the prefix from `from`, to be read step by step. */
  readonly follow: (from?: Revision) => Follower
}

export interface Follower {
  readonly next: () => Promise<WatchBatch>
  /** Reads until `count` events have arrived. */
  readonly events: (count: number) => Promise<StorageEvent[]>
  readonly batches: readonly WatchBatch[]
  /** Ends the watch; resolves to its remaining events. */
  readonly stop: () => Promise<IteratorResult<WatchBatch, unknown>>
  readonly iterator: AsyncIterator<WatchBatch>
}

/** `create` is called for each test. A backend that is slow to open may be shared, except by a test that closes it. */
export type CreateBackend = (t: TestContext, options: { readonly isOwn: boolean }) => Promise<BackendUnderTest>

export type Test = (
  title: string,
  body: (bench: Bench, t: TestContext) => Promise<void>,
  options?: { readonly isOwn?: boolean },
) => void

export function createBench(under: BackendUnderTest): Bench {
  const { backend } = under
  const prefix = `/suite/${process.pid}-${++prefixes}/`
  const end = prefixEnd(prefix)
  const key = (name: string | number): string => `${prefix}${name}`
  return {
    ...under,
    prefix,
    end,
    key,
    put: (name, value = 'x', extra = {}) => ok(backend.commit([{ key: key(name), value: bytes(value), ...extra }])),
    remove: (name) => ok(backend.commit([{ key: key(name), value: null }])),
    list: ({ start = '', ...options } = {}) =>
      backend.range({ start: start.startsWith(prefix) ? start : key(start), end, ...options }),
    follow(from) {
      const abort = new AbortController()
      const options = { start: prefix, end, signal: abort.signal, ...(from !== undefined && { from }) }
      return createFollower(backend.watch(options)[Symbol.asyncIterator](), abort)
    },
  }
}

export function createFollower(iterator: AsyncIterator<WatchBatch>, abort: AbortController): Follower {
  const batches: WatchBatch[] = []
  const next = async (): Promise<WatchBatch> => {
    const { done, value } = await iterator.next()
    assert.ok(!done, 'the watch goes on')
    assert.ok(value.revision >= (batches.at(-1)?.revision ?? 0), 'positions do not go back')
    batches.push(value)
    return value
  }
  const left: StorageEvent[] = []
  return {
    iterator,
    batches,
    next,
    async events(count) {
      while (left.length < count) left.push(...(await next()).events)
      return left.splice(0, count)
    },
    stop() {
      abort.abort()
      return iterator.next()
    },
  }
}

/** All events up to and including the one at `revision`. */
export async function until(watch: Follower, revision: Revision): Promise<StorageEvent[]> {
  const events: StorageEvent[] = []
  while ((events.at(-1)?.modRevision ?? 0) < revision) events.push(...(await watch.next()).events)
  return events
}

/** The first event of a watch that starts at the compacted revision is complete, or there is none. */
export async function inFullOrNot(
  watch: Follower,
  expected: [type: string, value: string, previous: string],
): Promise<void> {
  try {
    const [event] = await watch.events(1)
    assert.ok(event?.previous !== undefined)
    assert.deepEqual([event.type, text(event), text(event.previous)], expected)
    await watch.stop()
  } catch (caught) {
    if (!(caught instanceof StorageError)) throw caught
    assert.equal(caught.code, 'compacted')
  }
}

export async function take(watch: AsyncIterable<WatchBatch>, count: number): Promise<string[]> {
  const keys: string[] = []
  for await (const { events } of watch) {
    keys.push(...events.map((event) => event.key))
    if (keys.length >= count) break
  }
  return keys
}

/** Yields to the event loop, so that a loop over a fast backend blocks nothing. */
export function turn(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve))
}

export async function ok(result: Promise<CommitResult>): Promise<Ok> {
  const settled = await result
  assert.ok(settled.ok, 'the guards hold')
  return settled
}

export async function failed(result: Promise<CommitResult>): Promise<Refused> {
  const settled = await result
  assert.ok(!settled.ok, 'a guard fails')
  return settled
}

export async function rejects(promise: Promise<unknown>, code: StorageErrorCode): Promise<StorageError> {
  const error = await promise.then(
    () => undefined,
    (error: unknown) => error,
  )
  assert.ok(error instanceof StorageError, `fails with ${code}: ${String(error)}`)
  assert.equal(error.code, code, error.message)
  return error
}

export async function valueOf(backend: Backend, key: string): Promise<string | undefined> {
  const [item] = (await backend.range({ start: key })).items
  return item === undefined ? undefined : text(item)
}

export function bytes(text: string): Uint8Array {
  return Buffer.from(text)
}

export function text({ value }: { readonly value: Uint8Array }): string {
  return Buffer.from(value).toString()
}

export function shape(item: KeyValue | undefined): unknown[] | undefined {
  return item && [item.key, text(item), item.createRevision, item.modRevision, item.lease]
}

export function eventShape(event: StorageEvent): unknown[] {
  const { type, key, createRevision, modRevision, previous } = event
  return [type, key, text(event), createRevision, modRevision, previous && text(previous)]
}
