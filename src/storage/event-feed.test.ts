import assert from 'node:assert/strict'
import { describe, it } from 'node:test'

import { createVirtualClock } from '#lib/clock.ts'

import { StorageError, type Revision, type WatchBatch } from './backend.ts'
import { compactedError, EventFeed, type HistoryRequest } from './event-feed.ts'

const VALUE = new Uint8Array(744)

/** 1,000 bytes with its overhead. */
function commit(revision: Revision, key = 'k'): WatchBatch {
  const event = { type: 'put', key, value: VALUE, createRevision: revision, modRevision: revision, lease: 0 } as const
  return { revision, events: [event] }
}

interface Feed {
  readonly feed: EventFeed
  readonly clock: ReturnType<typeof createVirtualClock>
  readonly requests: HistoryRequest[]
  readonly watch: (from?: Revision) => AsyncGenerator<WatchBatch, void>
  readonly stop: AbortController
}

/** A feed that keeps five commits; its history has all, three revisions at a time. */
function createFeed(oldest = 1): Feed {
  const clock = createVirtualClock()
  const requests: HistoryRequest[] = []
  const stop = new AbortController()
  const history = async (request: HistoryRequest): Promise<WatchBatch> => {
    requests.push(request)
    if (request.from < oldest) throw compactedError(request.from, oldest)
    const revision = Math.min(request.from + 2, request.through)
    const revisions = Array.from({ length: revision - request.from + 1 }, (_, n) => request.from + n)
    return { revision, events: revisions.flatMap((revision) => commit(revision).events) }
  }
  const feed = new EventFeed({ clock, revision: 0, keepBytes: 5000, progressEveryMs: 1000, history })
  const watch: Feed['watch'] = (from) =>
    feed.watch({ start: 'k', signal: stop.signal, ...(from !== undefined && { from }) })
  return { feed, clock, requests, watch, stop }
}

async function read(watch: AsyncGenerator<WatchBatch, void>, count: number): Promise<Revision[]> {
  const revisions: Revision[] = []
  while (revisions.length < count) {
    const { value } = await watch.next()
    revisions.push(...(value as WatchBatch).events.map((event) => event.modRevision))
  }
  return revisions
}

const upTo = (last: Revision, first = 1): Revision[] => Array.from({ length: last - first + 1 }, (_, n) => first + n)

describe('EventFeed', () => {
  it('keeps a bounded number of commits, so that a slow watcher reads from the history until it catches up', async () => {
    const { feed, requests, watch } = createFeed()
    const slow = watch(1)
    feed.publish(commit(1))
    assert.deepEqual(await read(slow, 1), [1])
    for (const revision of upTo(12, 2)) feed.publish(commit(revision))
    assert.deepEqual(await read(slow, 11), upTo(12, 2))
    // The last five are kept: the history was needed for 2 to 7, in steps of three.
    assert.deepEqual(
      requests.map(({ from, through }) => [from, through]),
      [
        [2, 12],
        [5, 12],
      ],
    )
    feed.publish(commit(13))
    assert.deepEqual(await read(slow, 1), [13])
    assert.equal(requests.length, 2)
  })

  it('starts at a past revision from the history and continues without a gap', async () => {
    const { feed, watch } = createFeed()
    for (const revision of upTo(20)) feed.publish(commit(revision))
    const watcher = watch(4)
    assert.deepEqual(await read(watcher, 17), upTo(20, 4))
  })

  it('fails with the error of the history', async () => {
    const { feed, watch } = createFeed(9)
    for (const revision of upTo(20)) feed.publish(commit(revision))
    await assert.rejects(watch(8).next(), (error) => error instanceof StorageError && error.compactedRevision === 9)
  })

  it('drops commits on demand, and then reads from the history', async () => {
    const { feed, requests, watch } = createFeed()
    for (const revision of upTo(4)) feed.publish(commit(revision))
    feed.forget(3)
    assert.deepEqual(await read(watch(3), 2), [3, 4])
    assert.equal(requests.length, 0)
    await read(watch(2), 1)
    assert.equal(requests.length, 1)
  })

  it('reports progress of the revision to watchers', async () => {
    const { feed, clock, watch } = createFeed()
    const watcher = watch()
    assert.deepEqual(await watcher.next(), { done: false, value: { revision: 0, events: [] } })
    const progress = watcher.next()
    await clock.advance(5000)
    feed.publish(commit(1, 'other'))
    feed.publish(commit(2, 'other'))
    await clock.advance(1000)
    assert.deepEqual(await progress, { done: false, value: { revision: 2, events: [] } })
  })

  it('ends every watch with the error given to close()', async () => {
    const { feed, clock, watch } = createFeed()
    const waiting = watch(1).next()
    feed.close(new StorageError('closed', 'Over'))
    await assert.rejects(waiting, /Over/)
    await assert.rejects(watch().next(), /Over/)
    assert.equal(clock.pending, 0)
  })

  it('ends a watch without an error if it is aborted while the history is read', async () => {
    const stop = new AbortController()
    const history = async (): Promise<WatchBatch> => {
      stop.abort()
      throw new Error('Aborted')
    }
    const feed = new EventFeed({ clock: createVirtualClock(), revision: 9, history })
    const watch = feed.watch({ start: 'k', from: 1, signal: stop.signal })
    assert.deepEqual(await watch.next(), { done: true, value: undefined })
  })
})
