import assert from 'node:assert/strict'
import { describe, it } from 'node:test'

import fc from 'fast-check'

import type { Node } from '#apis/core/v1.ts'
import type {
  AllocationResult,
  Device,
  DeviceConstraint,
  DeviceRequest,
  ResourceClaim,
  ResourceSlice,
} from '#apis/resource/v1.ts'
import { runAtOnce } from '#lib/time-slicing.ts'

import { allocate, type AllocationInput } from './allocator.ts'
import type { TakenDevice } from './device-requests.ts'
import { Inventory } from './inventory.ts'
import { Ledger } from './ledger.ts'
import { Selection } from './selection.ts'

const DRIVER = 'd.example.com'
const NODE = { metadata: { name: 'n' }, spec: {}, status: {} } as Node

function slicesOf(devices: readonly Device[], counters: Readonly<Record<string, string>>): ResourceSlice[] {
  const pool = { name: 'p', generation: 1, resourceSliceCount: 2 }
  const values = Object.fromEntries(Object.entries(counters).map(([name, value]) => [name, { value }]))
  const sharedCounters = [{ name: 'set', counters: values }]
  return [
    { metadata: { name: 'a' }, spec: { driver: DRIVER, pool, nodeName: 'n', devices: [...devices] } },
    { metadata: { name: 'b' }, spec: { driver: DRIVER, pool, nodeName: 'n', sharedCounters } },
  ]
}

function claimOf(name: string, requests: readonly DeviceRequest[], constraints: readonly DeviceConstraint[] = []) {
  const devices = { requests: [...requests], constraints: [...constraints] }
  return { metadata: { namespace: 'x', name, uid: name }, spec: { devices }, status: {} } as ResourceClaim
}

function inputOf(
  slices: readonly ResourceSlice[],
  claims: readonly ResourceClaim[],
  ledger = new Ledger(),
): AllocationInput {
  const inventory = new Inventory()
  for (const slice of slices) inventory.set(slice)
  const selection = new Selection()
  return {
    node: NODE,
    pools: inventory.poolsFor(NODE),
    claims,
    ledger,
    classOf: (name) => ({ metadata: { name }, spec: {} }),
    matches: (expression, offered) => selection.matches(expression, offered),
    heedsTaints: true,
  }
}

const namesOf = (taken: readonly (readonly TakenDevice[])[] | string): readonly (readonly string[])[] | string =>
  typeof taken === 'string'
    ? taken
    : taken.map((own) => own.map(({ offered, wanted }) => `${wanted.name}=${offered.device.name}`))

interface DrawnDevice {
  readonly side: string
  readonly drawn: number
  readonly share: number
  readonly isTainted: boolean
}

function deviceOf({ side, drawn, share, isTainted }: DrawnDevice, at: number): Device {
  return {
    name: `d${at}`,
    attributes: { side: { string: side } },
    ...(drawn > 0 && { consumesCounters: [{ counterSet: 'set', counters: { units: { value: `${drawn}` } } }] }),
    ...(share > 0 && { allowMultipleAllocations: true, capacity: { room: { value: '4' } } }),
    ...(isTainted && { taints: [{ key: 'k', effect: 'NoSchedule' }] }),
  }
}

interface RequestSpec {
  readonly side: string
  readonly counts: readonly number[]
  readonly room: number
  readonly tolerates: boolean
}

const exactOf = ({ side, room, tolerates }: RequestSpec, count: number) => ({
  deviceClassName: 'c',
  allocationMode: 'ExactCount',
  count,
  ...(side !== '' && { selectors: [{ cel: { expression: `device.attributes['${DRIVER}'].side == '${side}'` } }] }),
  ...(tolerates && { tolerations: [{ operator: 'Exists' }] }),
  ...(room > 0 && { capacity: { requests: { room: `${room}` } } }),
})

function requestOf(spec: RequestSpec, at: number): DeviceRequest {
  const [first = 1, ...more] = spec.counts
  const name = `r${at}`
  if (more.length === 0) return { name, exactly: exactOf(spec, first) }
  return { name, firstAvailable: spec.counts.map((count, of) => ({ name: `s${of}`, ...exactOf(spec, count) })) }
}

const side = fc.constantFrom('a', 'b')
const drawnDevice: fc.Arbitrary<DrawnDevice> = fc.record({
  side,
  drawn: fc.integer({ min: 0, max: 2 }),
  share: fc.constantFrom(0, 1),
  isTainted: fc.constantFrom(false, false, true),
})
const spec: fc.Arbitrary<RequestSpec> = fc.record({
  side: fc.constantFrom('', 'a', 'b'),
  counts: fc.constantFrom([1], [2], [2, 1], [1]),
  room: fc.constantFrom(0, 0, 1, 3),
  tolerates: fc.boolean(),
})
const constraint = fc.constantFrom<DeviceConstraint[]>(
  [],
  [],
  [{ matchAttribute: `${DRIVER}/side` }],
  [{ distinctAttribute: `${DRIVER}/side`, requests: ['r0', 'r1'] }],
)
const world = fc.record({
  devices: fc.array(drawnDevice, { minLength: 1, maxLength: 4 }),
  units: fc.integer({ min: 0, max: 4 }),
  claims: fc.array(fc.record({ requests: fc.array(spec, { minLength: 1, maxLength: 2 }), constraint }), {
    minLength: 1,
    maxLength: 2,
  }),
  taken: fc.array(fc.nat(3), { maxLength: 2 }),
})

interface Pick {
  readonly claim: number
  readonly request: string
  readonly name: string
  readonly spec: RequestSpec
  readonly at: number
}

/** A brute-force model: tries every combination in order and checks it as a whole. */
class BruteForce {
  readonly #world: DrawnDevice[]
  readonly #units: number
  readonly #taken: ReadonlySet<number>
  readonly #constraints: readonly (readonly DeviceConstraint[])[]

  constructor(
    devices: DrawnDevice[],
    units: number,
    taken: ReadonlySet<number>,
    constraints: readonly (readonly DeviceConstraint[])[],
  ) {
    this.#world = devices
    this.#units = units
    this.#taken = taken
    this.#constraints = constraints
  }

  find(
    slots: readonly (readonly (readonly Omit<Pick, 'at'>[])[])[],
    picks: readonly Pick[] = [],
  ): readonly Pick[] | undefined {
    const [alternatives, ...rest] = slots
    if (alternatives === undefined) return this.#holds(picks) ? picks : undefined
    for (const slot of alternatives)
      for (const combination of combinations(this.#world.length, slot.length)) {
        const more = combination.map((at, of) => ({ ...(slot[of] as Omit<Pick, 'at'>), at }))
        const found = this.find(rest, [...picks, ...more])
        if (found !== undefined) return found
      }
    return undefined
  }

  #holds(picks: readonly Pick[]): boolean {
    if (!picks.every((pick) => this.#suits(pick, picks))) return false
    const used = new Set([...this.#taken, ...picks.map(({ at }) => at)])
    const spent = [...used].reduce((sum, at) => sum + (this.#world[at]?.drawn ?? 0), 0)
    const drawsNow = picks.some(({ at }) => (this.#world[at]?.drawn ?? 0) > 0)
    if (drawsNow && spent > this.#units) return false
    return this.#constraints.every((own, claim) => this.#areMet(own, picks, claim))
  }

  #suits({ at, spec: own }: Pick, picks: readonly Pick[]): boolean {
    const device = this.#world[at] as DrawnDevice
    const isShared = device.share > 0
    const others = picks.filter((one) => one.at === at)
    const room = others.reduce((sum, one) => sum + (one.spec.room === 0 ? 4 : one.spec.room), 0)
    return (
      (own.side === '' || own.side === device.side) &&
      (!device.isTainted || own.tolerates) &&
      (own.room === 0 || isShared) &&
      !this.#taken.has(at) &&
      (isShared ? room <= 4 : others.length === 1)
    )
  }

  #areMet(constraints: readonly DeviceConstraint[], picks: readonly Pick[], claim: number): boolean {
    return constraints.every(({ matchAttribute, requests = [] }) => {
      const own = picks.filter(
        (one) => one.claim === claim && (requests.length === 0 || requests.includes(one.request)),
      )
      const sides = new Set(own.map(({ at }) => (this.#world[at] as DrawnDevice).side))
      return matchAttribute === undefined ? sides.size === own.length : sides.size <= 1
    })
  }
}

function combinations(of: number, count: number, from = 0): number[][] {
  if (count === 0) return [[]]
  const all: number[][] = []
  for (let at = from; at < of; at++) for (const more of combinations(of, count - 1, at + 1)) all.push([at, ...more])
  return all
}

describe('device allocation of the scheduler', () => {
  it('finds the first combination that meets all requests, if there is one', () => {
    fc.assert(
      fc.property(world, ({ devices, units, claims, taken }) => {
        const gone = new Set(taken.filter((at) => at < devices.length))
        const ledger = new Ledger()
        const results = Array.from(gone, (at) => ({ request: 'x', driver: DRIVER, pool: 'p', device: `d${at}` }))
        ledger.promise('before', { devices: { results } })
        const own = claims.map(({ requests, constraint: list }, at) => claimOf(`c${at}`, requests.map(requestOf), list))
        const got = runAtOnce(allocate(inputOf(slicesOf(devices.map(deviceOf), { units: `${units}` }), own, ledger)))
        const plain = new BruteForce(
          devices,
          units,
          gone,
          claims.map((one) => one.constraint),
        )
        const slots = claims.flatMap(({ requests }, claim) =>
          requests.map((one, at) =>
            one.counts.map((count, of) => {
              const name = one.counts.length === 1 ? `r${at}` : `r${at}/s${of}`
              return Array.from({ length: count }, () => ({ claim, request: `r${at}`, name, spec: one }))
            }),
          ),
        )
        const wanted = plain.find(slots)
        const expected =
          wanted === undefined
            ? 'cannot allocate all claims'
            : claims.map((_, claim) =>
                wanted.filter((one) => one.claim === claim).map(({ name, at }) => `${name}=d${at}`),
              )
        assert.deepEqual(namesOf(got), expected)
      }),
      { numRuns: 200 },
    )
  })

  it('considers a device again that was unsuitable for another request of the same pod', () => {
    const shared = (at: number): Device => deviceOf({ side: 'a', drawn: 0, share: 1, isTainted: false }, at)
    const whole = deviceOf({ side: 'a', drawn: 0, share: 0, isTainted: false }, 2)
    const any = { side: '', counts: [1], room: 0, tolerates: false }
    const requests = [any, { ...any, counts: [2], room: 3 }].map(requestOf)
    const got = runAtOnce(allocate(inputOf(slicesOf([shared(0), shared(1), whole], {}), [claimOf('c', requests)])))
    assert.deepEqual(namesOf(got), [['r0=d2', 'r1=d0', 'r1=d1']])
  })

  it('stops a search early if no device can meet a request', () => {
    const devices = Array.from({ length: 40 }, (_, at) =>
      deviceOf({ side: 'a', drawn: 0, share: 0, isTainted: false }, at),
    )
    const plenty = { side: '', counts: [10], room: 0, tolerates: false }
    const requests = [plenty, plenty, { ...plenty, side: 'b', counts: [1] }].map(requestOf)
    const search = allocate(inputOf(slicesOf(devices, {}), [claimOf('c', requests)]))
    let steps = 0
    for (;;) {
      const { done, value } = search.next()
      steps++
      if (done !== true) continue
      assert.equal(value, 'cannot allocate all claims')
      break
    }
    assert.ok(steps < 500, `${steps} steps`)
  })

  it('yields to the event loop during a search', () => {
    const devices = Array.from({ length: 30 }, (_, at) =>
      deviceOf({ side: 'a', drawn: 1, share: 0, isTainted: false }, at),
    )
    const requests = [{ side: '', counts: [15], room: 0, tolerates: false }].map(requestOf)
    const search = allocate(inputOf(slicesOf(devices, { units: '14' }), [claimOf('c', requests)]))
    for (let steps = 0; steps < 1000; steps++) assert.notEqual(search.next().done, true)
  })
})

describe('ledger of allocated devices', () => {
  const of = (device: string): AllocationResult => ({
    devices: { results: [{ request: 'r', driver: DRIVER, pool: 'p', device }] },
  })
  const stored = (uid: string, allocation?: AllocationResult): ResourceClaim => ({
    metadata: { name: uid, uid },
    spec: { devices: { requests: [] } },
    status: { ...(allocation !== undefined && { allocation }) },
  })

  it('contains a device from its assumed allocation until the claim is deallocated or deleted, in any order of events', () => {
    const action = fc.tuple(fc.constantFrom('promise', 'write', 'give back', 'fail', 'delete'), fc.nat(2), fc.nat(2))
    fc.assert(
      fc.property(fc.array(action, { maxLength: 30 }), (actions) => {
        const ledger = new Ledger()
        const promised = new Map<number, number>()
        const written = new Map<number, number>()
        for (const [what, claim, device] of actions) {
          if (what === 'promise' && !written.has(claim)) {
            promised.set(claim, device)
            ledger.promise(`${claim}`, of(`d${device}`))
          } else if (what === 'write' && promised.has(claim)) {
            written.set(claim, promised.get(claim) as number)
            promised.delete(claim)
            ledger.observe(stored(`${claim}`, of(`d${written.get(claim)}`)))
            ledger.release(`${claim}`)
          } else if (what === 'give back') {
            written.delete(claim)
            ledger.observe(stored(`${claim}`))
          } else if (what === 'fail') {
            promised.delete(claim)
            ledger.release(`${claim}`)
          } else if (what === 'delete') {
            written.delete(claim)
            promised.delete(claim)
            ledger.gone(stored(`${claim}`))
          }
          const used = new Set([...promised.values(), ...written.values()])
          for (const at of [0, 1, 2]) assert.equal(ledger.isTaken(`${DRIVER}/p/d${at}`), used.has(at))
        }
      }),
    )
  })
})
