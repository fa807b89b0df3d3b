import assert from 'node:assert/strict'
import { describe, it } from 'node:test'

import fc from 'fast-check'

import type { Endpoint } from '#apis/discovery/v1.ts'

import { hintEach, hintsNearby, isOverloaded, type PlannedSlice, shareOut, type ZoneShares } from './hints.ts'

const endpoint = (zone: string | undefined, more: Partial<Endpoint> = {}): Endpoint => ({
  addresses: ['10.0.0.1'],
  conditions: { ready: true },
  nodeName: 'n1',
  ...(zone !== undefined && { zone }),
  ...more,
})
const filled = (zones: string, isChanged = true): PlannedSlice => ({
  endpoints: zones.split('').map((zone) => endpoint(zone)),
  isChanged,
})
const shares = (...values: number[]): ZoneShares => new Map(values.map((value, at) => ['abcdef'[at] ?? '', value]))
const hintsIn = (slices: readonly (readonly Endpoint[])[]): string[] =>
  slices.map((slice) => slice.map(({ hints }) => hints?.forZones?.[0]?.name ?? '-').join(''))

describe('shareOut() of endpoints to zones', () => {
  const CASES: readonly [what: string, zones: string, shares: ZoneShares, expected: string][] = [
    ['keeps endpoints in their zones if zones are balanced', 'aabb', shares(0.5, 0.5), 'aabb'],
    ['gives endpoints of other zones to a zone without endpoints', 'aaaa', shares(0.5, 0.5), 'bbaa'],
    ['divides endpoints in proportion to the CPUs of each zone', 'aaabbb', shares(1 / 3, 2 / 3), 'baabbb'],
    ['keeps endpoints in their zones if the overload is below 20 %', 'aaaaabbbbb', shares(0.45, 0.55), 'aaaaabbbbb'],
  ]
  for (const [what, zones, given, expected] of CASES) {
    it(what, () => {
      const shared = shareOut([filled(zones)], given)
      assert.ok('slices' in shared)
      assert.deepEqual(hintsIn(shared.slices), [expected])
    })
  }

  const PROBLEMS: readonly [zones: string, shares: ZoneShares, expected: RegExp][] = [
    ['ab', undefined, /^Insufficient Node information: allocatable CPU or zone not specified on one or more nodes$/],
    ['ab', shares(0.3, 0.3, 0.4), /^Insufficient number of endpoints \(2 endpoints, 3 zones\)$/],
    ['aab', shares(0.9, 0.05, 0.05), /^Unable to allocate minimum .* threshold \(3 endpoints, 3 zones\)$/],
  ]
  for (const [zones, given, expected] of PROBLEMS) {
    it(`fails with ${expected.source}`, () => {
      const shared = shareOut([filled(zones)], given)
      assert.match('problem' in shared ? shared.problem : 'none', expected)
    })
  }

  it('fails if a ready endpoint has no zone', () => {
    const waiting = endpoint(undefined, { conditions: { ready: false } })
    const slice = (...more: Endpoint[]): PlannedSlice => ({
      endpoints: [...filled('aabb').endpoints, ...more],
      isChanged: true,
    })
    assert.ok('slices' in shareOut([slice(waiting)], shares(0.5, 0.5)))
    assert.deepEqual(shareOut([slice(endpoint(undefined), endpoint('a'))], shares(0.5, 0.5)), {
      problem: 'One or more endpoints do not have a zone specified',
    })
  })

  it('keeps the hints of a slice if they are valid, and counts its endpoints', () => {
    const first = shareOut([filled('aaaa')], shares(0.5, 0.5))
    assert.ok('slices' in first)
    const [kept = []] = first.slices
    const shared = shareOut([{ endpoints: kept, isChanged: false }, filled('ab')], shares(0.5, 0.5))
    assert.ok('slices' in shared)
    assert.equal(shared.slices[0], kept)
    assert.deepEqual(hintsIn(shared.slices), ['bbaa', 'ab'])
    assert.deepEqual(Object.fromEntries(shared.counts), { a: 3, b: 3 })
  })

  it('assigns each endpoint to one zone, and counts the endpoints per zone', () => {
    const zones = fc.array(fc.array(fc.constantFrom('a', 'b', 'c'), { maxLength: 9 }), { maxLength: 4 })
    fc.assert(
      fc.property(zones, fc.array(fc.integer({ min: 1, max: 9 }), { minLength: 2, maxLength: 3 }), (slices, cpus) => {
        const total = cpus.reduce((sum, cpu) => sum + cpu, 0)
        const given = shares(...cpus.map((cpu) => cpu / total))
        const shared = shareOut(
          slices.map((slice) => filled(slice.join(''))),
          given,
        )
        if ('problem' in shared) return
        const hints = hintsIn(shared.slices).join('')
        assert.equal(hints.includes('-'), false)
        for (const [zone, count] of shared.counts) assert.equal(hints.split(zone).length - 1, count)
      }),
    )
  })
})

describe('isOverloaded() for topology hints', () => {
  it('returns true if a zone has too few endpoints, or zones are unknown', () => {
    const counts = (a: number, b?: number): Map<string, number> =>
      new Map([['a', a], ...(b === undefined ? [] : [['b', b] as [string, number]])])
    assert.equal(isOverloaded(counts(2, 2), shares(0.5, 0.5)), false)
    assert.equal(isOverloaded(counts(4, 1), shares(0.5, 0.5)), true)
    assert.equal(isOverloaded(counts(4), shares(0.5, 0.5)), true)
    assert.equal(isOverloaded(counts(4), undefined), true)
    assert.equal(isOverloaded(new Map(), undefined), false)
  })
})

describe('hintsNearby() for trafficDistribution', () => {
  const CASES: readonly [distribution: string | undefined, endpoint: Endpoint, expected: Endpoint['hints']][] = [
    [undefined, endpoint('a', { hints: { forZones: [{ name: 'a' }] } }), undefined],
    ['PreferClose', endpoint('a'), { forZones: [{ name: 'a' }] }],
    ['PreferSameZone', endpoint('a'), { forZones: [{ name: 'a' }] }],
    ['PreferSameNode', endpoint('a'), { forZones: [{ name: 'a' }], forNodes: [{ name: 'n1' }] }],
    ['PreferSameNode', endpoint(undefined), { forNodes: [{ name: 'n1' }] }],
    ['PreferSameZone', endpoint(undefined), undefined],
    ['PreferSameZone', endpoint('a', { conditions: { ready: false } }), undefined],
  ]
  for (const [distribution, given, expected] of CASES) {
    it(`returns ${JSON.stringify(expected)} for ${distribution}`, () => {
      const [slice] = hintEach(hintsNearby(distribution))([{ endpoints: [given], isChanged: false }])
      assert.deepEqual(slice?.[0]?.hints, expected)
    })
  }
})
