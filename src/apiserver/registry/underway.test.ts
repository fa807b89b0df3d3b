import assert from 'node:assert/strict'
import { describe, it } from 'node:test'

import type { KeyValue, Revision } from '#storage/backend.ts'

import type { Entry } from './entry.ts'
import { type Underway, WritesUnderway } from './underway.ts'

function writeOf(text: string): { write: Underway; made: Revision[] } {
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

/** Begins a write, and ends it with the revision that `commit` resolves to. */
async function run(
  writes: WritesUnderway,
  write: Underway,
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

describe('writes underway', () => {
  it('make one entry, whether the cache or the writer is first', async () => {
    const writes = new WritesUnderway()
    const first = writeOf('a')
    let seen: Entry | undefined
    const entry = await run(writes, first.write, () => {
      seen = writes.pickUp(stored('a', 7))
      return Promise.resolve(7)
    })
    assert.ok(entry !== undefined && entry === seen)
    assert.deepEqual(first.made, [7])
    const second = writeOf('b')
    const later = await run(writes, second.write, () => Promise.resolve(8))
    assert.equal(writes.pickUp(stored('b', 8)), later)
    assert.deepEqual([second.made, writes.pickUp(stored('b', 8))], [[8], undefined])
  })

  it('are not taken for what somebody else wrote', async () => {
    const writes = new WritesUnderway()
    const mine = writeOf('mine')
    const entry = await run(writes, mine.write, () => {
      assert.equal(writes.pickUp(stored('theirs', 7)), undefined)
      return Promise.resolve(undefined)
    })
    assert.deepEqual([entry, writes.pickUp(stored('mine', 8)), mine.made], [undefined, undefined, []])
  })

  it('are forgotten when they fail, but not those that followed them', async () => {
    const writes = new WritesUnderway()
    const failure = Promise.withResolvers<undefined>()
    const failing = run(writes, writeOf('a').write, () => failure.promise)
    const next = writeOf('b')
    const running = run(writes, next.write, () => Promise.resolve(9))
    failure.reject(new Error('Lost'))
    await assert.rejects(failing, /Lost/)
    assert.equal(await running, writes.pickUp(stored('b', 9)))
  })
})
