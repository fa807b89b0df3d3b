import assert from 'node:assert/strict'
import { describe, it } from 'node:test'

import fc from 'fast-check'

import { createVirtualClock } from '#lib/clock.ts'
import { createSeededRandom } from '#lib/random.ts'
import type { Backend } from '#storage/backend.ts'
import { createAtRest } from '#storage/encryption/at-rest.ts'
import { NO_ENCRYPTION } from '#storage/encryption/config.ts'
import { createMemoryBackend } from '#storage/memory.ts'

import type { PortLedger, PortRange } from './node-ports.ts'
import { portBits, portsOf, rangeText } from './port-bits.ts'
import { createStoredLedger } from './port-ledger.ts'

const RANGE: PortRange = { first: 30_000, last: 32_767 }
const KEY = '/registry/ranges/servicenodeports'

interface World {
  readonly backend: Backend & { commits: number; ranges: number; isDown: boolean }
  readonly open: (range?: PortRange) => PortLedger
}

/** A store that counts its calls, and the ledgers of several servers. */
function createWorld(): World {
  const random = createSeededRandom(1)
  const memory = createMemoryBackend({ clock: createVirtualClock(), random })
  const counts = { commits: 0, ranges: 0, isDown: false }
  const backend = Object.assign(counts, {
    commit: (...args: Parameters<Backend['commit']>) => {
      counts.commits++
      if (counts.isDown) return Promise.reject(new Error('no answer'))
      return memory.commit(...args)
    },
    range: (...args: Parameters<Backend['range']>) => {
      counts.ranges++
      return memory.range(...args)
    },
  }) as unknown as World['backend']
  const resting = createAtRest(NO_ENCRYPTION, random).resting({ group: '', resource: 'x' })
  return { backend, open: (range = RANGE) => createStoredLedger({ backend, resting, range }) }
}

const take =
  (...ports: number[]) =>
  (taken: Set<number>): number =>
    ports.filter((port) => !taken.has(port) && taken.add(port)).length

const begin = (ledger: PortLedger, ...ports: number[]): Promise<boolean> =>
  ledger.rebuild((_taken, isNew) => Promise.resolve({ taken: new Set(ports), outcome: isNew }))

const all = (ledger: PortLedger): Promise<number[]> => ledger.change((taken) => [...taken].sort((a, b) => a - b))

describe('bitmap of allocated node ports', () => {
  it("has the same bytes as Go's big.Int with the same bits", () => {
    assert.equal(portBits([], RANGE), '')
    assert.equal(portBits([30_000], RANGE), 'AQ==')
    assert.equal(portBits([30_000, 30_009], RANGE), 'AgE=')
    assert.equal(Buffer.from(portBits([32_767], RANGE), 'base64').length, 346)
    assert.equal(rangeText(RANGE), '30000-32767')
  })

  it('round-trips, without ports outside the range', () => {
    fc.assert(
      fc.property(fc.uniqueArray(fc.integer({ min: 29_990, max: 32_777 })), (ports) => {
        const inside = ports.filter((port) => port >= RANGE.first && port <= RANGE.last).sort((a, b) => a - b)
        assert.deepEqual([...portsOf('30000-32767', portBits(ports, RANGE))], inside)
      }),
    )
  })

  it('is rejected without a port range', () => {
    assert.throws(() => portsOf('many', ''), /"many" cannot be read/)
    assert.deepEqual([...portsOf('5', 'AQ==')], [5])
  })
})

describe('stored bitmap of allocated node ports', () => {
  it('allocates no ports before the bitmap exists in the store', async () => {
    const ledger = createWorld().open()
    await assert.rejects(ledger.change(take(30_000)), {
      message: 'cannot allocate resources of type servicenodeportallocations at this time',
    })
    assert.equal(await begin(ledger), true)
    assert.equal(await ledger.change(take(30_000)), 1)
    assert.equal(await begin(ledger, 30_000), false)
  })

  it("is stored as upstream's object under upstream's key", async () => {
    const { backend, open } = createWorld()
    await begin(open(), 30_000, 30_009)
    const { items } = await backend.range({ start: KEY })
    assert.deepEqual(JSON.parse(Buffer.from(items[0]!.value).toString()), {
      kind: 'RangeAllocation',
      apiVersion: 'v1',
      metadata: {},
      range: '30000-32767',
      data: 'AgE=',
    })
  })

  it("can be read in upstream's protobuf", async () => {
    const { backend, open } = createWorld()
    // RangeAllocation{range: "30000-32767", data: {2, 1}} in the envelope.
    const raw = Buffer.concat([
      Buffer.from([0x0a, 0x00, 0x12, 0x0b]),
      Buffer.from('30000-32767'),
      Buffer.from([0x1a, 0x02, 0x02, 0x01]),
    ])
    const type = Buffer.concat([
      Buffer.from([0x0a, 0x15, 0x0a, 0x02]),
      Buffer.from('v1'),
      Buffer.from([0x12, 0x0f]),
      Buffer.from('RangeAllocation'),
    ])
    const value = Buffer.concat([Buffer.from([0x6b, 0x38, 0x73, 0x00]), type, Buffer.from([0x12, raw.length]), raw])
    await backend.commit([{ key: KEY, value }])
    assert.deepEqual(await all(open()), [30_000, 30_009])
  })

  it('never gives one port to two servers', async () => {
    const { open } = createWorld()
    const [a, b] = [open(), open()]
    await begin(a)
    const outcomes = await Promise.all(
      Array.from({ length: 40 }, (_, n) => (n % 2 === 0 ? a : b).change(take(30_000 + (n % 10)))),
    )
    assert.equal(outcomes.filter((count) => count === 1).length, 10)
    assert.deepEqual(await all(a), await all(b))
  })

  it('writes concurrent changes together', async () => {
    const { backend, open } = createWorld()
    const ledger = open()
    await begin(ledger)
    const before = backend.commits
    await Promise.all(Array.from({ length: 100 }, (_, n) => ledger.change(take(30_000 + n))))
    assert.ok(backend.commits - before <= 2, `${backend.commits - before} commits`)
  })

  it('is not read again while one server writes, and is reloaded before a port is refused', async () => {
    const { backend, open } = createWorld()
    const [a, b] = [open(), open()]
    await begin(a)
    await a.change(take(30_000))
    const before = backend.ranges
    await a.change(take(30_001))
    assert.equal(backend.ranges, before)
    await b.change((taken) => taken.delete(30_001))
    assert.equal(await a.change(take(30_001)), 1)
  })

  it('refuses ports while another port range is stored, until it is rebuilt', async () => {
    const { open } = createWorld()
    await begin(open(), 30_000, 32_000)
    const narrow = open({ first: 31_000, last: 32_767 })
    await assert.rejects(narrow.change(take(31_500)), {
      message: 'the provided range does not match the current range',
    })
    const seen = await narrow.rebuild((taken) => Promise.resolve({ taken, outcome: [...taken] }))
    assert.deepEqual(seen, [30_000, 32_000])
    assert.deepEqual(await all(narrow), [32_000])
  })

  it('is rebuilt again after a conflict', async () => {
    const { open } = createWorld()
    const [a, b] = [open(), open()]
    await begin(a)
    let tries = 0
    const outcome = await a.rebuild(async (taken) => {
      if (tries++ === 0) await b.change(take(30_007))
      return { taken: new Set([...taken, 30_001]), outcome: tries }
    })
    assert.equal(outcome, 2)
    assert.deepEqual(await all(b), [30_001, 30_007])
  })

  it('stops its rebuild after repeated conflicts', async () => {
    const { open } = createWorld()
    const [a, b] = [open(), open()]
    await begin(a)
    let port = 30_100
    const rebuilding = a.rebuild(async () => {
      await b.change(take(port++))
      return { taken: new Set([port]), outcome: 0 }
    })
    await assert.rejects(rebuilding, /other servers changed it repeatedly/)
  })

  it('drops a failed change and is reloaded after it', async () => {
    const { backend, open } = createWorld()
    const ledger = open()
    await begin(ledger)
    backend.isDown = true
    await assert.rejects(ledger.change(take(30_000)), { message: 'no answer' })
    backend.isDown = false
    assert.deepEqual(await all(ledger), [])
    await assert.rejects(
      ledger.change(() => {
        throw new Error('own fault')
      }),
      { message: 'own fault' },
    )
    assert.equal(await ledger.change(take(30_000)), 1)
  })
})
