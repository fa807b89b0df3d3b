import assert from 'node:assert/strict'
import { describe, it } from 'node:test'

import type { TestEntry } from './cache.fixture.ts'
import { Change, Ring } from './ring.ts'

describe('recent changes in a watch cache collection', () => {
  it('stay within their memory limit', () => {
    const limits = { windowMs: 1000, maxChanges: 100, maxBytes: 1000 }
    const ring = new Ring<TestEntry & { readonly bytes: number }>(limits, 0)
    const entry = (revision: number, bytes: number) => ({ key: 'k', modRevision: revision, text: '', color: '', bytes })
    const push = (revision: number, bytes: number): void => {
      const [now, previous] = [entry(revision, 10_000), bytes === 0 ? undefined : entry(revision - 1, bytes)]
      ring.push(new Change({ revision, key: 'k', entry: now, previous, atMs: 0 }))
    }
    for (let revision = 1; revision <= 20; revision++) push(revision, 100)
    assert.deepEqual([ring.end - ring.first, ring.floor], [10, 10])
    for (let revision = 21; revision <= 30; revision++) push(revision, 0)
    assert.deepEqual([ring.end - ring.first, ring.floor], [20, 10])
    push(31, 5000)
    assert.deepEqual([ring.end - ring.first, ring.floor], [0, 31])
  })
})
