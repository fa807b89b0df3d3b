import assert from 'node:assert/strict'
import { describe, it } from 'node:test'

import { createWorld, entriesAt, pods, texts } from './cache.fixture.ts'
import { WatchCache } from './watch-cache.ts'

describe('state of a watch cache collection', () => {
  it('stays the same for a reader in several steps, whatever changes meanwhile', async (t) => {
    const world = await createWorld(t)
    const start = await world.put('a/x', 'red:0')
    await world.cache.fresh()
    const state = world.pods.stateAt(start)
    for (let n = 1; n < 100; n++) await world.put(`a/${n}`, 'red:1')
    await world.cache.fresh()
    assert.equal(world.pods.stateAt(start), state, 'found, not made again')
    assert.equal(state?.size, 1)
    assert.equal(world.pods.stateAt(world.cache.revision), world.pods.state)
    await world.clock.advance(600_000)
    assert.equal(world.pods.stateAt(start), undefined)
  })

  it('includes states from before the cache started, so that paged lists continue after a restart', async (t) => {
    const world = await createWorld(t)
    const first = await world.put('a/x', 'red:1')
    await world.put('a/x', 'red:2')
    const last = await world.put('a/y', 'red:3')
    const cache = new WatchCache({ backend: world.backend, clock: world.clock, prefix: '/registry/' })
    const collection = await cache.open(pods)
    await cache.start()
    t.after(() => cache.close())
    assert.deepEqual(texts(entriesAt(collection, first)), ['a/x=red:1'])
    assert.deepEqual(texts(entriesAt(collection, last)), ['a/x=red:2', 'a/y=red:3'])
    assert.equal(collection.changedAt, last)
  })

  it('exists for the history window, and the newest state always exists', async (t) => {
    const world = await createWorld(t)
    const start = await world.put('a/x', 'red:0')
    await world.cache.fresh()
    await world.clock.advance(600_000)
    assert.equal(world.pods.stateAt(start), world.pods.state, 'nothing is newer')
    await world.backend.commit([{ key: '/registry/others/a', value: Buffer.from('1') }])
    await world.cache.fresh()
    await world.clock.advance(600_000)
    assert.equal(world.pods.stateAt(start), undefined)
    assert.equal(world.pods.stateAt(world.cache.revision), world.pods.state)
  })
})
