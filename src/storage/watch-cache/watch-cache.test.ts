import assert from 'node:assert/strict'
import { describe, it } from 'node:test'

import { createVirtualClock } from '#lib/clock.ts'
import { createSeededRandom } from '#lib/random.ts'

import { type Backend, StorageError } from '../backend.ts'
import { createMemoryBackend } from '../memory.ts'
import { createWorld, entriesAt, everything, ofColor, pods, record, texts } from './cache.fixture.ts'
import { WatchCache } from './watch-cache.ts'

describe('watch cache', () => {
  it('contains objects from before its start, and applies changes', async (t) => {
    const world = await createWorld(t)
    await world.put('a/x', 'red:1')
    const last = await world.put('b/y', 'blue:1')
    assert.equal(await world.cache.fresh(), last)
    assert.deepEqual(texts(world.pods.entries()), ['a/x=red:1', 'b/y=blue:1'])
    assert.deepEqual(texts(world.pods.entries({ prefix: '/registry/pods/b/' })), ['b/y=blue:1'])
    assert.deepEqual(texts(world.pods.entries({ after: '/registry/pods/a/x' })), ['b/y=blue:1'])
    const late = await world.cache.open({ ...pods, prefix: '/registry/others/' })
    assert.equal(late.size, 0)
    await world.backend.commit([{ key: '/registry/others/o', value: Buffer.from('red:o') }])
    await world.cache.fresh()
    assert.equal(late.get('/registry/others/o')?.text, 'red:o')
  })

  it('opens a collection on demand during writes, without loss', async (t) => {
    const world = await createWorld(t)
    await world.backend.commit([{ key: '/registry/late/a', value: Buffer.from('x') }])
    const opening = world.cache.open({ ...pods, prefix: '/registry/late/' })
    await world.backend.commit([{ key: '/registry/late/b', value: Buffer.from('y') }])
    const late = await opening
    await world.backend.commit([{ key: '/registry/late/a', value: null }])
    await world.cache.fresh()
    assert.deepEqual(
      [...late.entries()].map(({ key }) => key),
      ['/registry/late/b'],
    )
  })

  it('sends ADDED when an object starts to match a selector, and DELETED with the last content when it stops', async (t) => {
    const world = await createWorld(t)
    const from = world.cache.revision
    const red = record(world.pods, ofColor('red'), from)
    const all = record(world.pods, everything, from)
    const one = await world.put('a/x', 'red:1')
    await world.put('a/x', 'blue:2')
    await world.put('a/x', 'red:3')
    await world.put('a/x', 'red:4')
    const five = await world.remove('a/x')
    await world.cache.fresh()
    assert.deepEqual(red.seen, [
      `ADDED a/x red:1 @${one}`,
      `DELETED a/x red:1 @${one + 1}`,
      `ADDED a/x red:3 @${one + 2}`,
      `MODIFIED a/x red:4 @${one + 3}`,
      `DELETED a/x red:4 @${five}`,
    ])
    assert.deepEqual(
      all.seen.map((line) => line.split(' ')[0]),
      ['ADDED', 'MODIFIED', 'MODIFIED', 'MODIFIED', 'DELETED'],
    )
  })

  it('resumes a watch from a revision, also from one before the cache started', async (t) => {
    const clock = createVirtualClock()
    const backend = createMemoryBackend({ clock, random: createSeededRandom(1) })
    const put = async (text: string): Promise<number> =>
      (await backend.commit([{ key: '/registry/pods/a/x', value: Buffer.from(text) }])).revision
    const first = await put('red:1')
    await put('red:2')
    const cache = new WatchCache({ backend, clock, prefix: '/registry/' })
    const collection = await cache.open(pods)
    await cache.start()
    t.after(() => cache.close())
    const resumed = record(collection, everything, first)
    assert.deepEqual(resumed.seen, [`MODIFIED a/x red:2 @${first + 1}`])
    await put('red:3')
    await cache.fresh()
    assert.equal(resumed.seen.length, 2)
  })

  it('remembers the position of a slow reader and delivers the rest later', async (t) => {
    const world = await createWorld(t)
    const slow = record(world.pods, everything, world.cache.revision, 2)
    for (let n = 0; n < 5; n++) await world.put('a/x', `red:${n}`)
    await world.cache.fresh()
    assert.equal(slow.seen.length, 2)
    assert.ok((slow.reader?.position() ?? 0) < world.cache.revision)
    slow.room = Infinity
    slow.reader?.resume()
    assert.deepEqual(
      slow.seen.map((line) => line.split(' ')[2]),
      ['red:0', 'red:1', 'red:2', 'red:3', 'red:4'],
    )
    assert.equal(slow.reader?.position(), world.cache.revision)
    await world.put('a/x', 'red:5')
    await world.cache.fresh()
    assert.equal(slow.seen.length, 6)
  })

  it('ends a reader that is behind the history window, and rejects one that starts there', async (t) => {
    const world = await createWorld(t)
    const start = await world.put('a/x', 'red:0')
    await world.cache.fresh()
    const slow = record(world.pods, everything, start, 1)
    for (let n = 1; n < 5; n++) await world.put('a/x', `red:${n}`)
    await world.cache.fresh()
    await world.clock.advance(600_000)
    slow.room = Infinity
    slow.reader?.resume()
    assert.equal(slow.expired, true)
    assert.equal(world.pods.watch(everything, start, { change: () => true, expired: () => undefined }), undefined)
    assert.equal(world.pods.stateAt(start), undefined)
  })

  it('stops delivery when a reader is closed, also from within a delivery', async (t) => {
    const world = await createWorld(t)
    const seen: number[] = []
    const reader = world.pods.watch(everything, world.cache.revision, {
      change(_type, { revision }) {
        seen.push(revision)
        reader?.close()
        return true
      },
      expired: () => assert.fail('expired'),
    })
    await world.put('a/x', 'red:1')
    await world.put('a/x', 'red:2')
    await world.cache.fresh()
    assert.equal(seen.length, 1)
    assert.equal(world.pods.readers, 0)
  })

  it('waits for a revision, with a timeout', async (t) => {
    const world = await createWorld(t)
    await assert.rejects(world.cache.waitFor(1000, AbortSignal.abort()), { code: 'timeout' })
    const waiting = world.cache.waitFor(1)
    await world.put('a/x', 'red:1')
    await waiting
  })

  it('ends readers and waiters when it is closed', async (t) => {
    const world = await createWorld(t)
    const reader = record(world.pods, everything, world.cache.revision)
    const waiting = world.cache.waitFor(1000)
    await world.cache.close()
    assert.equal(reader.expired, true)
    await assert.rejects(waiting, { code: 'timeout' })
  })

  it('detects and repairs a difference from the backend', async (t) => {
    let dropping = false
    const lossy = (backend: Backend): Backend => ({
      ...wrapBackend(backend),
      async *watch(options) {
        for await (const batch of backend.watch(options)) yield dropping ? { ...batch, events: [] } : batch
      },
    })
    const world = await createWorld(t, lossy)
    await world.put('a/x', 'red:1')
    await world.cache.fresh()
    assert.deepEqual(await world.cache.check(), [])
    dropping = true
    await world.put('a/y', 'red:2')
    await world.cache.fresh()
    dropping = false
    const reader = record(world.pods, everything, world.cache.revision)
    assert.equal(world.pods.get('/registry/pods/a/y'), undefined)
    await world.clock.advance(30_000)
    await world.pods.ready
    assert.equal(world.pods.get('/registry/pods/a/y')?.text, 'red:2')
    assert.deepEqual(
      world.repairs.map(({ reason, prefix }) => [reason, prefix]),
      [['mismatch', '/registry/pods/']],
    )
    assert.equal(reader.expired, true)
  })

  it('relists if the backend has compacted the missed history', async (t) => {
    let cut = (): void => undefined
    const breakable = (backend: Backend): Backend => ({
      ...wrapBackend(backend),
      async *watch(options) {
        const control = new AbortController()
        cut = () => control.abort()
        yield* backend.watch({ ...options, signal: AbortSignal.any([options.signal, control.signal]) })
      },
    })
    const world = await createWorld(t, breakable)
    await world.put('a/x', 'red:1')
    await world.cache.fresh()
    const reader = record(world.pods, everything, world.cache.revision)
    cut()
    await new Promise((resolve) => setImmediate(resolve))
    await world.put('a/x', 'red:2')
    const last = await world.put('a/y', 'red:3')
    await world.backend.compact(last)
    await world.clock.advance(1000)
    await world.cache.fresh()
    await world.pods.ready
    assert.deepEqual(texts(world.pods.entries()), ['a/x=red:2', 'a/y=red:3'])
    assert.equal(reader.expired || reader.seen.length === 2, true)
  })

  it('delays only the collection of a value that cannot be decoded yet', async (t) => {
    const locked = new StorageError('unavailable', 'its key is not there')
    let isLocked = true
    const read = ({ value }: { readonly value: Uint8Array }): void => {
      if (isLocked && Buffer.from(value).toString().startsWith('locked')) throw locked
    }
    const world = await createWorld(t, (backend) => ({
      ...wrapBackend(backend),
      async range(options) {
        const result = await backend.range(options)
        result.items.forEach(read)
        return result
      },
    }))
    const vault = await world.cache.open({
      ...pods,
      prefix: '/registry/vault/',
      describe(stored, isListed) {
        read(stored)
        return pods.describe(stored, isListed)
      },
    })
    await world.backend.commit([{ key: '/registry/vault/a', value: Buffer.from('locked:1') }])
    await world.put('a/x', 'red:1')
    await world.cache.fresh()
    assert.deepEqual([vault.isLoaded, texts(world.pods.entries())], [false, ['a/x=red:1']])
    await world.clock.advance(5000)
    assert.equal(vault.isLoaded, false)
    isLocked = false
    await world.clock.advance(1000)
    await vault.ready
    assert.deepEqual(texts(vault.entries()), ['/a=locked:1'])
  })

  it('agrees with a simple model for any writes: current state, past states and watchers', async (t) => {
    const world = await createWorld(t)
    const random = createSeededRandom(7)
    const history: [revision: number, state: Map<string, string>][] = [[world.cache.revision, new Map()]]
    const watchers = ['red', 'blue'].map((color) => ({
      color,
      from: 0,
      recorder: record(world.pods, ofColor(color), world.cache.revision),
    }))
    for (let step = 0; step < 1500; step++) {
      const name = `ns${random.int(3)}/pod${random.int(400)}`
      const state = new Map(history.at(-1)?.[1])
      const gone = random.int(4) === 0
      const text = `${random.int(2) === 0 ? 'red' : 'blue'}:${step}`
      if (gone && !state.has(name)) continue
      const revision = gone ? await world.remove(name) : await world.put(name, text)
      if (gone) state.delete(name)
      else state.set(name, text)
      history.push([revision, state])
    }
    await world.cache.fresh()
    for (const [revision, state] of history.filter((_, at) => at % 97 === 0)) {
      const expected = [...state].map(([name, text]) => `${name}=${text}`).sort()
      assert.deepEqual(texts(entriesAt(world.pods, revision)).sort(), expected)
    }
    const [, final] = history.at(-1) ?? [0, new Map<string, string>()]
    for (const { color, recorder } of watchers) {
      const known = new Set<string>()
      for (const line of recorder.seen) {
        const [type, name = ''] = line.split(' ')
        assert.equal(known.has(name), type !== 'ADDED', line)
        if (type === 'DELETED') known.delete(name)
        else known.add(name)
      }
      const expected = [...final].filter(([, text]) => text.startsWith(color)).map(([name]) => name)
      assert.deepEqual([...known].sort(), expected.sort())
    }
    assert.deepEqual(await world.cache.check(), [])
  })
})

/** A backend whose methods can be replaced one by one. */
function wrapBackend(backend: Backend): Backend {
  return {
    name: backend.name,
    commit: (...args) => backend.commit(...args),
    range: (...args) => backend.range(...args),
    currentRevision: (...args) => backend.currentRevision(...args),
    timeOf: (...args) => backend.timeOf(...args),
    revisionAt: (...args) => backend.revisionAt(...args),
    watch: (...args) => backend.watch(...args),
    compact: (...args) => backend.compact(...args),
    grantLease: (...args) => backend.grantLease(...args),
    keepAliveLease: (...args) => backend.keepAliveLease(...args),
    revokeLease: (...args) => backend.revokeLease(...args),
    health: (...args) => backend.health(...args),
    snapshot: (...args) => backend.snapshot(...args),
    fork: (...args) => backend.fork(...args),
    close: () => backend.close(),
  }
}
