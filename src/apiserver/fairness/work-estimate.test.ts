import assert from 'node:assert/strict'
import { describe, it } from 'node:test'

import { requestInfoOf } from '#auth/request-info.ts'
import type { Collection } from '#storage/watch-cache/collection.ts'

import type { Entry } from '../registry/entry.ts'
import { createEstimate, seatsByCount, seatsBySize, type WorkEstimate } from './work-estimate.ts'

const terms = { isCached: true, isSelective: false, isSingle: false }

describe('seats of a list request', () => {
  // Objects, limit, bytes each, further options: by size, by count.
  for (const [count, limit, bytes, more, bySize, byCount] of [
    [99, 0, 1010, { isCached: false }, 1, 2],
    [10, 0, 9999, { isCached: false }, 1, 1],
    [1000, 0, 999, { isCached: false }, 10, 20],
    [1000, 100, 999, { isCached: false }, 1, 2],
    [1000, 100, 999, { isCached: false, isSelective: true }, 5, 11],
    [1000, 0, 999, {}, 10, 10],
    [1000, 100, 999, {}, 1, 10],
    [99, 0, 10_101, { isCached: false }, 10, 2],
    [1000, 0, 9999, { isCached: false }, 100, 20],
    [1000, 100, 9999, { isCached: false, isSelective: true }, 50, 11],
    [1000, 0, 9999, {}, 10, 10],
    [1000, 0, 9999, { isSingle: true }, 1, 1],
  ] as const) {
    it(`are ${bySize} by size and ${byCount} by count for ${count} objects of ${bytes} bytes, limit ${limit} and ${JSON.stringify(more)}`, () => {
      const list = { ...terms, count, limited: limit > 0 ? Math.min(limit, count) : count, ...more }
      assert.deepEqual([seatsBySize(list, bytes), seatsByCount(list)], [bySize, byCount])
    })
  }
})

/** For 5,000 objects of 1 kB each. */
const run = { keys: [], values: Array.from({ length: 5000 }, () => ({ bytes: 1000 })), memo: new Map() }
const collection = { size: 5000, prefix: '/p/', state: { runs: () => [run] } } as unknown as Collection<Entry>

function estimate(request: string, { maxSeats = 8, watchers = 0, watchList = true } = {}): WorkEstimate {
  const [method = '', target = ''] = request.split(' ')
  const [path = '', text = ''] = target.split('?')
  const query = new URLSearchParams(text)
  const info = requestInfoOf(method, path, query)
  const collectionOf = (): Collection<Entry> | undefined => (info.resource === 'pods' ? collection : undefined)
  const parts = { bySize: true, watchList, collectionOf, watchersOf: () => watchers }
  return createEstimate(parts)(info, query, { level: { maxSeats }, meter: { watched: () => undefined } })
}

describe('work estimate of a request', () => {
  for (const [request, seats] of [
    ['GET /api/v1/namespaces/a/pods/x', 1],
    ['GET /healthz', 1],
    ['GET /api/v1/pods', 8],
    ['GET /api/v1/pods?limit=200', 2],
    ['GET /api/v1/pods?limit=no', 8],
    ['GET /api/v1/pods?fieldSelector=metadata.name%3Dx', 1],
    ['GET /api/v1/others', 1],
    ['GET /api/v1/pods?watch=1', 8],
    ['GET /api/v1/pods?watch=1&resourceVersion=0', 8],
    ['GET /api/v1/pods?watch=1&resourceVersion=7', 1],
    ['GET /api/v1/pods?watch=1&resourceVersion=7&sendInitialEvents=true', 8],
    ['DELETE /api/v1/namespaces/a/pods', 1],
  ] as const) {
    it(`assigns ${seats} seats to ${request}`, () => {
      assert.deepEqual(estimate(request), { initialSeats: seats, finalSeats: 0, additionalMs: 0 })
    })
  }

  it('has at most the seats of the priority level, or ten if the level has no limit', () => {
    assert.equal(estimate('GET /api/v1/pods', { maxSeats: 3 }).initialSeats, 3)
    assert.equal(estimate('GET /api/v1/pods', { maxSeats: 0 }).initialSeats, 10)
    assert.equal(estimate('GET /api/v1/pods?watch=1', { watchList: false }).initialSeats, 1)
  })

  it('adds seats to a write for the time in which watchers are notified', () => {
    const write = 'PUT /api/v1/namespaces/a/pods/x'
    assert.deepEqual(estimate(write, { watchers: 9 }), { initialSeats: 1, finalSeats: 0, additionalMs: 0 })
    assert.deepEqual(estimate(write, { watchers: 25 }), { initialSeats: 1, finalSeats: 3, additionalMs: 5 })
    assert.deepEqual(estimate(write, { watchers: 1000 }), { initialSeats: 1, finalSeats: 8, additionalMs: 62.5 })
    assert.deepEqual(estimate(write, { watchers: 1000, maxSeats: 0 }).finalSeats, 10)
    const token = 'POST /api/v1/namespaces/a/serviceaccounts/x/token'
    assert.equal(estimate(token, { watchers: 1000 }).additionalMs, 0)
  })
})
