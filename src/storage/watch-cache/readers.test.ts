import assert from 'node:assert/strict'
import { describe, it } from 'node:test'

import { createWorld, everything, ofColor, pods, type TestEntry, turn } from './cache.fixture.ts'
import type { Collection } from './collection.ts'
import type { Filter, Reader, FilteredChange } from './readers.ts'

describe('readers of the watch cache', () => {
  /** The changes of each reader, by call. */
  function recordPatient(
    collection: Collection<TestEntry>,
    filter: Filter<TestEntry>,
    from: number,
    hasRoom = (): boolean => true,
  ): { readonly calls: string[]; readonly reader: Reader | undefined } {
    const calls: string[] = []
    const tell = (seen: readonly FilteredChange<TestEntry>[]): boolean => {
      calls.push(seen.map(({ type, change: { entry, previous } }) => `${type} ${(entry ?? previous)?.text}`).join(', '))
      return hasRoom()
    }
    const reader = collection.watch(filter, from, {
      change: (type, change) => tell([{ type, change }]),
      changes: tell,
      expired: () => void calls.push('expired'),
    })
    return { calls, reader }
  }

  it('receive concurrent changes in one batch, and only those they selected', async (t) => {
    const world = await createWorld(t)
    const all = recordPatient(world.pods, everything, world.cache.revision)
    const red = recordPatient(world.pods, ofColor('red'), world.cache.revision)
    await world.backend.commit(
      ['red:1', 'blue:2', 'red:3'].map((text) => ({ key: `${pods.prefix}${text}`, value: Buffer.from(text) })),
    )
    await world.cache.fresh()
    await turn()
    assert.deepEqual(all.calls, ['ADDED red:1, ADDED blue:2, ADDED red:3'])
    assert.deepEqual(red.calls, ['ADDED red:1, ADDED red:3'])
  })

  it('are notified in portions; later ones get larger batches, in order, without loss', async (t) => {
    const world = await createWorld(t)
    const readers = Array.from({ length: 500 }, () => recordPatient(world.pods, everything, world.cache.revision))
    const notified = (): number => readers.filter(({ calls }) => calls.length > 0).length
    await world.put('a', 'red:1')
    await world.cache.fresh()
    assert.ok(notified() > 0 && notified() < 500, `${notified()}`)
    const late = readers.find(({ calls }) => calls.length === 0)
    assert.ok((late?.reader?.position() ?? 0) < world.cache.revision, 'has not been told')
    const early = readers.find(({ calls }) => calls.length > 0)
    assert.equal(early?.reader?.position(), world.cache.revision)
    await world.put('a', 'red:2')
    await world.remove('a')
    await world.cache.fresh()
    while (notified() < 500 || readers.some(({ calls }) => !calls.join().includes('DELETED'))) await turn()
    for (const { calls, reader } of readers) {
      assert.equal(calls.join(', '), 'ADDED red:1, MODIFIED red:2, DELETED red:2')
      assert.equal(reader?.position(), world.cache.revision)
    }
    assert.ok(late !== undefined && late.calls.length < 3)
  })

  it('wait if they are full, and get nothing after their end', async (t) => {
    const world = await createWorld(t)
    const full = recordPatient(world.pods, everything, world.cache.revision, () => false)
    const gone = recordPatient(world.pods, everything, world.cache.revision)
    await world.put('a', 'red:1')
    gone.reader?.close()
    await world.put('a', 'red:2')
    await world.cache.fresh()
    await turn()
    assert.deepEqual([full.calls, gone.calls], [['ADDED red:1'], []])
    assert.ok((full.reader?.position() ?? 0) < world.cache.revision)
    full.reader?.resume()
    assert.deepEqual(full.calls, ['ADDED red:1', 'MODIFIED red:2'])
    assert.equal(world.pods.readers, 1)
    await world.cache.close()
  })
})
