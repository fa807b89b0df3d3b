/**
 * Tests the limits and faults of open past states: compaction, too many of them, idle ones, a server that stops, and a
 * client that asks for many moments. The forks of the store are counted: each open past state has one.
 */
import assert from 'node:assert/strict'
import { request as httpsRequest } from 'node:https'
import { describe, it } from 'node:test'
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'

import type { Backend } from '#storage/backend.ts'
import { createMemoryBackend } from '#storage/memory.ts'

import { type Bed, past, type Reply, startBed, turns } from './bed.ts'

const MAPS = '/api/v1/namespaces/default/configmaps'
const MAX_OPEN = 4
/** A virtual clock keeps cancelled timers until their time has passed; those of watches are the longest. */
const CANCELLED_MS = 3_700_000

const ascending = (a: number, b: number): number => a - b

setFlagsFromString('--expose-gc')
const collectGarbage = runInNewContext('gc') as () => void

/** The forks of a store, which are those of open past states. */
interface Forks {
  /** All that were made. */
  made: number
  /** The revisions of the open ones. */
  readonly open: Set<number>
  /** The largest number of open ones. */
  most: number
  readonly refs: WeakRef<Backend>[]
}

function countForks(backend: Backend): Forks {
  const forks: Forks = { made: 0, open: new Set(), most: 0, refs: [] }
  const fork = backend.fork.bind(backend)
  backend.fork = async (options = {}) => {
    const id = options.revision ?? 0
    forks.made++
    const made = await fork(options)
    forks.open.add(id)
    forks.most = Math.max(forks.most, forks.open.size)
    forks.refs.push(new WeakRef(made))
    const close = made.close.bind(made)
    made.close = async () => {
      forks.open.delete(id)
      await close()
    }
    return made
  }
  return forks
}

interface FaultBed {
  readonly bed: Bed
  readonly forks: Forks
  readonly store: Backend
  /** Revisions of commits that are a second apart, oldest first. */
  readonly revisions: readonly number[]
}

async function startFaultBed(historyMs: number = Infinity): Promise<FaultBed> {
  const opened: { store?: Backend; forks?: Forks } = {}
  const bed = await startBed({
    openStore: async ({ clock, random }) => {
      const store = createMemoryBackend({ clock, random, historyMs })
      opened.forks = countForks(store)
      opened.store = store
      return store
    },
  })
  const revisions: number[] = []
  for (let at = 0; at < 8; at++) {
    await bed.must('POST', MAPS, { metadata: { name: `map-${at}` } })
    revisions.push(await bed.revision())
    await bed.clock.advance(1000)
  }
  const { forks, store } = opened
  assert.ok(forks !== undefined && store !== undefined)
  return { bed, forks, store, revisions }
}

/** The number of ConfigMaps of the test at a revision. */
async function countAt({ bed }: FaultBed, moment: string): Promise<number> {
  const { status, json } = await bed.send(past(moment, MAPS))
  assert.equal(status, 200, moment)
  return (json().items as { metadata: { name: string } }[]).filter(({ metadata }) => metadata.name.startsWith('map-'))
    .length
}

function get({ bed }: FaultBed, moment: string): Promise<Reply> {
  return bed.send(past(moment, `${MAPS}/map-0`))
}

describe('open past states', () => {
  it('stay readable when the store compacts; new ones of those moments are refused', async () => {
    const own = await startFaultBed()
    await using bed = own.bed
    const [first = 0, second = 0, third = 0] = own.revisions
    assert.equal(await countAt(own, `rv:${first}`), 1)
    await own.store.compact(third)
    assert.equal(await countAt(own, `rv:${first}`), 1)
    const refused = await get(own, `rv:${second}`)
    assert.equal(refused.status, 410)
    assert.match(refused.json().message, /does not reach back to this revision: it begins at \S+Z, rv:\d+$/)
    assert.equal((await get(own, new Date(bed.clock.now() - 20_000).toISOString())).status, 410)
    assert.equal(await countAt(own, `rv:${third}`), 3)
    // The server closes a state that had no request for a minute.
    await bed.clock.advance(80_000)
    assert.equal((await get(own, `rv:${first}`)).status, 410)
  })

  it('of a relative moment can be read again after compaction', async () => {
    const own = await startFaultBed(30_000)
    await using bed = own.bed
    const ask = async (): Promise<number> => (await get(own, '-3s')).status
    assert.equal(await ask(), 200)
    // A client asks every five seconds, until other moments close its state and its revision is gone.
    for (let step = 0; step < 30; step++) {
      await bed.clock.advance(5000)
      assert.equal(await ask(), 200)
    }
    const latest = await bed.revision()
    for (let at = 0; at < MAX_OPEN; at++) assert.equal((await get(own, `rv:${latest - at}`)).status, 200)
    assert.equal(await ask(), 410)
    await bed.clock.advance(10_000)
    assert.equal(await ask(), 200)
  })

  it('are four at most: the fifth closes the one that was unused for longest', async () => {
    const own = await startFaultBed()
    await using bed = own.bed
    const { forks, revisions } = own
    for (const revision of revisions.slice(0, 5)) {
      assert.equal((await get(own, `rv:${revision}`)).status, 200)
      await bed.clock.advance(10)
    }
    await turns()
    assert.deepEqual([...forks.open].sort(ascending), revisions.slice(1, 5))
    assert.equal(forks.made, 5)
    await get(own, `rv:${revisions[1]}`)
    assert.equal(forks.made, 5, 'an open state is used again')
    await bed.clock.advance(10)
    await get(own, `rv:${revisions[0]}`)
    await turns()
    assert.deepEqual(
      [...forks.open].sort(ascending),
      [0, 1, 3, 4].map((at) => revisions[at]),
      'the third was unused for longest',
    )
  })

  it('in use refuse a fifth with a reason, until one of them is free', async () => {
    const own = await startFaultBed()
    await using bed = own.bed
    const watches = await Promise.all(
      own.revisions.slice(0, MAX_OPEN).map((revision) => bed.watch(past(`rv:${revision}`, `${MAPS}?watch=1`))),
    )
    assert.deepEqual(
      watches.map(({ status }) => status),
      [200, 200, 200, 200],
    )
    const refused = await get(own, `rv:${own.revisions[5]}`)
    assert.equal(refused.status, 429)
    assert.match(refused.json().message, /4 past states are in use; try again when one of them is not/)
    assert.equal(refused.json().details.retryAfterSeconds, 1)
    // Today is not affected.
    assert.equal((await bed.send(`${MAPS}/map-0`)).status, 200)
    await watches[2]?.end()
    assert.equal((await get(own, `rv:${own.revisions[5]}`)).status, 200)
    for (const watch of watches) await watch.end()
  })

  it('close after a minute without use, and leave nothing in memory', async () => {
    const own = await startFaultBed()
    await using bed = own.bed
    for (const revision of own.revisions.slice(0, 3)) await get(own, `rv:${revision}`)
    const watch = await bed.watch(past(`rv:${own.revisions[3]}`, `${MAPS}?watch=1`))
    await bed.clock.advance(59_000)
    assert.equal(own.forks.open.size, 4)
    await bed.clock.advance(300_000)
    assert.deepEqual([...own.forks.open], [own.revisions[3]], 'only the watched one is open')
    await watch.end()
    await bed.clock.advance(80_000)
    assert.equal(own.forks.open.size, 0)
    await bed.clock.advance(CANCELLED_MS)
    assert.equal(await alive(own.forks), 0, 'past states in memory')
  })

  it('that cannot play on end their watches', async () => {
    const own = await startFaultBed()
    await using bed = own.bed
    const watch = await bed.watch(past(`rv:${own.revisions[0]}@0.1x`, `${MAPS}?watch=1`))
    await bed.clock.advance(1000)
    for (const name of ['dropped', 'kept']) await bed.must('POST', MAPS, { metadata: { name } })
    await own.store.compact(await bed.revision())
    // The changes that were read before the compaction have been played.
    await bed.clock.advance(80_000)
    await turns()
    assert.match(watch.bytes().toString(), /map-7/)
    await watch.ended
    await turns()
    assert.equal(own.forks.open.size, 0)
  })
})

describe('a server with past states', () => {
  it('stops although watches of the past are open', async () => {
    const own = await startFaultBed()
    const { bed, forks, revisions } = own
    const watch = await bed.watch(past(`rv:${revisions[0]}`, `${MAPS}?watch=1`))
    const ended = overHttps(bed, past(`rv:${revisions[1]}@0.1x`, `${MAPS}?watch=1`))
    await ended.begun
    await get(own, `rv:${revisions[2]}`)
    assert.equal(forks.open.size, 3)
    const beforeMs = bed.clock.now()
    await bed[Symbol.asyncDispose]()
    await ended.over
    await watch.ended
    assert.equal(forks.open.size, 0)
    // The grace period of the test server is a second.
    assert.ok(bed.clock.now() - beforeMs <= 2000)
  })

  it('opens four at most for a client that asks for 200 moments at once, and serves others', async (t) => {
    const own = await startFaultBed()
    await using bed = own.bed
    for (let at = 0; at < 192; at++) await bed.must('POST', MAPS, { metadata: { name: `more-${at}` } })
    const latest = await bed.revision()
    const asking = Array.from({ length: 200 }, (_, at) => get(own, `rv:${latest - at}`))
    const others = await Promise.all(Array.from({ length: 50 }, () => bed.send(`${MAPS}/map-0`)))
    assert.ok(others.every(({ status }) => status === 200))
    const codes = (await Promise.all(asking)).map(({ status }) => status)
    assert.deepEqual([...new Set(codes)].sort(ascending), [200, 429])
    assert.ok(own.forks.most <= MAX_OPEN)
    t.diagnostic(`${codes.filter((code) => code === 200).length} of 200 answered, ${own.forks.made} states opened`)
    // One after another they close each other.
    for (let at = 0; at < 100; at++) assert.equal((await get(own, `rv:${latest - at}`)).status, 200)
    await turns()
    assert.ok(own.forks.open.size <= MAX_OPEN)
    assert.ok(own.forks.most <= MAX_OPEN + 1, 'one closes while another opens')
    // Used all the time, so that they do not close.
    for (let passedMs = 0; passedMs < CANCELLED_MS; passedMs += 30_000) {
      await bed.clock.advance(30_000)
      for (let at = 96; at < 100; at++) await get(own, `rv:${latest - at}`)
    }
    assert.equal(await alive(own.forks), MAX_OPEN)
  })
})

/** How many are still in memory after some collections of garbage. */
async function alive({ refs }: Forks): Promise<number> {
  for (let tries = 0; tries < 5; tries++) {
    await turns(2)
    collectGarbage()
  }
  return refs.filter((ref) => ref.deref() !== undefined).length
}

/** A watch over a connection, which the server has to end. */
function overHttps(bed: Bed, path: string): { readonly begun: Promise<void>; readonly over: Promise<void> } {
  const begun = Promise.withResolvers<void>()
  const over = Promise.withResolvers<void>()
  const headers = { authorization: `Bearer ${bed.plane.token}` }
  const { port } = new URL(bed.plane.url)
  const sent = httpsRequest({ host: '127.0.0.1', port, path, headers, rejectUnauthorized: false }, (answer) => {
    begun.resolve()
    answer.resume()
    answer.on('close', () => over.resolve())
  })
  sent.on('error', (error) => {
    begun.reject(error)
    over.resolve()
  })
  sent.end()
  return { begun: begun.promise, over: over.promise }
}
