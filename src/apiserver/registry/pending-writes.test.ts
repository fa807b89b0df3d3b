import assert from 'node:assert/strict'
import { describe, it } from 'node:test'

import type { KeyValue, Revision } from '#storage/backend.ts'

import type { Entry } from './entry.ts'
import { type OutgoingWrite, PendingWrites } from './pending-writes.ts'

function writeOf(text: string): { write: OutgoingWrite; made: Revision[] } {
  const made: Revision[] = []
  const make = (revision: Revision): Entry => {
    made.push(revision)
    return { key: 'k', modRevision: revision } as Entry
  }
  return { write: { key: 'k', value: Buffer.from(text), make }, made }
}

const stored = (text: string, revision: Revision): KeyValue => ({
  key: 'k',
  value: Buffer.from(text),
  modRevision: revision,
  createRevision: revision,
  lease: 0,
})

/** Begins a write and ends it with the revision that `commit` resolves to. */
async function run(
  writes: PendingWrites,
  write: OutgoingWrite,
  commit: () => Promise<Revision | undefined>,
): Promise<Entry | undefined> {
  const pending = writes.begin(write)
  let revision: Revision | undefined
  let entry: Entry | undefined
  try {
    revision = await commit()
  } finally {
    entry = writes.end(pending, write, revision)
  }
  return entry
}

describe('PendingWrites', () => {
  it('builds one cache entry, whether the watch event or the write response arrives first', async () => {
    const writes = new PendingWrites()
    const first = writeOf('a')
    let seen: Entry | undefined
    const entry = await run(writes, first.write, () => {
      seen = writes.takeEntry(stored('a', 7))
      return Promise.resolve(7)
    })
    assert.ok(entry !== undefined && entry === seen)
    assert.deepEqual(first.made, [7])
    const second = writeOf('b')
    const later = await run(writes, second.write, () => Promise.resolve(8))
    assert.equal(writes.takeEntry(stored('b', 8)), later)
    assert.deepEqual([second.made, writes.takeEntry(stored('b', 8))], [[8], undefined])
  })

  it('ignores a value that another writer stored', async () => {
    const writes = new PendingWrites()
    const mine = writeOf('mine')
    const entry = await run(writes, mine.write, () => {
      assert.equal(writes.takeEntry(stored('theirs', 7)), undefined)
      return Promise.resolve(undefined)
    })
    assert.deepEqual([entry, writes.takeEntry(stored('mine', 8)), mine.made], [undefined, undefined, []])
  })

  it('drops a failed write, and keeps the next one', async () => {
    const writes = new PendingWrites()
    const failure = Promise.withResolvers<undefined>()
    const failing = run(writes, writeOf('a').write, () => failure.promise)
    const next = writeOf('b')
    const running = run(writes, next.write, () => Promise.resolve(9))
    failure.reject(new Error('Lost'))
    await assert.rejects(failing, /Lost/)
    assert.equal(await running, writes.takeEntry(stored('b', 9)))
  })
})
