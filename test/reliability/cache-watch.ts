/**
 * Tests read the watch cache through this file: one cache for both collections, with its readers as streams of batches.
 * The revision of a batch is the one that the server would send in a bookmark.
 */
import { realClock } from '#lib/clock.ts'
import { StorageError, type Backend, type Revision } from '#storage/backend.ts'
import { compactedError, covers } from '#storage/event-feed.ts'
import type { Collection } from '#storage/watch-cache/collection.ts'
import type { Change as CacheChange } from '#storage/watch-cache/ring.ts'
import { WatchCache, type RepairEvent } from '#storage/watch-cache/watch-cache.ts'

import { type Batch, type Change, COLLECTIONS, type Item, ROOT, toItem } from './store.ts'

export type CacheEntry = Item & { readonly modRevision: Revision }

export interface Cache {
  readonly cache: WatchCache
  readonly collections: ReadonlyMap<string, Collection<CacheEntry>>
  readonly repairs: RepairEvent[]
}

/** How often a watcher hears how far the cache has come. */
const BOOKMARK_EVERY_MS = 20

/** Starts a cache on the backend; `close` it before the backend. */
export async function startCache(backend: Backend): Promise<Cache> {
  const repairs: RepairEvent[] = []
  const cache = new WatchCache({
    backend,
    clock: realClock,
    prefix: ROOT,
    checkEveryMs: 400,
    onRepair: (event) => void repairs.push(event),
  })
  const collections = new Map<string, Awaited<ReturnType<typeof cache.open<CacheEntry>>>>()
  for (const prefix of COLLECTIONS) {
    const describe = (stored: Parameters<typeof toItem>[0]): CacheEntry => ({
      ...toItem(stored),
      modRevision: stored.modRevision,
    })
    collections.set(prefix, await cache.open<CacheEntry>({ prefix, describe }))
  }
  await cache.start()
  return { cache, collections, repairs }
}

/** The collection that holds all keys of a range. */
export function collectionOf({ collections }: Cache, start: string): Collection<CacheEntry> {
  for (const [prefix, collection] of collections) if (start.startsWith(prefix)) return collection
  throw new TypeError(`No collection has "${start}"`)
}

interface CacheWatch {
  readonly start: string
  readonly end?: string
  readonly from: Revision
}

/** Ends when the signal is aborted; fails with `compacted` when the reader lost its place. */
export async function* watchCollection(
  cached: Cache,
  { start, end, from }: CacheWatch,
  signal: AbortSignal,
): AsyncGenerator<Batch, void, undefined> {
  const { cache } = cached
  const collection = collectionOf(cached, start)
  try {
    await collection.ready
    // A revision to come is waited for, as the server does.
    await cache.waitFor(from - 1, signal)
  } catch (error) {
    if (signal.aborted) return
    throw error
  }
  let events: Change[] = []
  let isExpired = false
  const reader = collection.watch({ id: `${start} ${end}`, matches: ({ key }) => covers(start, end, key) }, from - 1, {
    change: (_, change) => {
      events.push(toChange(change))
      return true
    },
    expired: () => void (isExpired = true),
  })
  if (reader === undefined) throw compactedError(from, collection.floor)
  try {
    for (let reported = 0; !signal.aborted;) {
      const [revision, ready] = [reader.position(), events]
      events = []
      if (ready.length > 0 || revision > reported) yield { revision, events: ready }
      reported = Math.max(reported, revision)
      if (isExpired) throw new StorageError('compacted', 'The reader lost its place in the cache')
      await new Promise((resolve) => void setTimeout(resolve, BOOKMARK_EVERY_MS / 4))
    }
  } finally {
    reader.close()
  }
}

function toChange({ revision, key, entry, previous }: CacheChange<CacheEntry>): Change {
  const { create = 0, lease = 0, value = '' } = entry ?? previous ?? {}
  return {
    type: entry === undefined ? 'delete' : 'put',
    key,
    value,
    create,
    mod: revision,
    lease,
    ...(previous && {
      previous: { key, value: previous.value, create: previous.create, mod: previous.mod, lease: previous.lease },
    }),
  }
}
