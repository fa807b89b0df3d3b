/** Implements the store interface of the reliability tests in this process, with a backend and a watch cache. */
import type { Backend, Revision, StorageEvent, Write } from '#storage/backend.ts'

import { type Cache, collectionOf, watchCollection } from './cache-watch.ts'
import {
  type Batch,
  type Calls,
  type Change,
  type Committed,
  type Item,
  type Listed,
  type Method,
  type Range,
  type Store,
  type TextWrite,
  toItem,
} from './store.ts'

export function createTextStore(backend: Backend, cached: Cache): Store {
  const handlers: { [M in Method]: (argument: Calls[M]['argument']) => Promise<Calls[M]['result']> } = {
    commit: (writes) => commit(backend, writes),
    range: (range) => (range.via === 'cache' ? listCached(cached, range) : list(backend, range)),
    revision: () => backend.currentRevision(),
    compact: async (revision) => (await backend.compact(revision), null),
    grant: (ttlMs) => backend.grantLease(ttlMs),
    renew: async (lease) => (await backend.keepAliveLease(lease), null),
    revoke: async (lease) => (await backend.revokeLease(lease), null),
    status: async () => {
      const { compactedRevision: compacted, ok, message } = await backend.health()
      return { compacted, ok, message, repairs: cached.repairs }
    },
  }
  return {
    call: (method, argument) => handlers[method](argument),
    watch: ({ via, from, ...range }, signal) =>
      via === 'cache'
        ? watchCollection(cached, { ...range, from: from ?? 1 }, signal)
        : watchBackend(backend, { ...range, ...(from !== undefined && { from }) }, signal),
  }
}

async function commit(backend: Backend, writes: readonly TextWrite[]): Promise<Committed> {
  const result = await backend.commit(
    writes.map((write): Write => ({ ...write, value: write.value === null ? null : Buffer.from(write.value) })),
  )
  const items = result.ok ? result.previous : result.current
  return { ok: result.ok, revision: result.revision, items: items.map((item) => (item ? toItem(item) : null)) }
}

async function list(backend: Backend, range: Range): Promise<Listed> {
  const { items, more, count, revision } = await backend.range(range)
  return { items: items.map(toItem), more, count, revision }
}

/** As a server answers from its cache: brought up to date first, then one picture of the state. */
async function listCached(cached: Cache, { start, end }: Range): Promise<Listed> {
  const { cache } = cached
  const collection = collectionOf(cached, start)
  await collection.ready
  await cache.fresh()
  await collection.ready
  const { revision } = cache
  const beyond = end ?? `${start}\0`
  const items = [...collection.entries()]
    .filter(({ key }) => key >= start && key < beyond)
    .map(({ key, value, create, mod, lease }): Item => ({ key, value, create, mod, lease }))
  return { items, more: false, count: items.length, revision }
}

async function* watchBackend(
  backend: Backend,
  request: { readonly start: string; readonly end?: string; readonly from?: Revision },
  signal: AbortSignal,
): AsyncGenerator<Batch, void, undefined> {
  for await (const { revision, events } of backend.watch({ ...request, signal })) {
    yield { revision, events: events.map(toChange) }
  }
}

function toChange({ type, previous, ...event }: StorageEvent): Change {
  return { type, ...toItem(event), ...(previous && { previous: toItem(previous) }) }
}
