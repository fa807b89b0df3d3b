import assert from 'node:assert/strict'
import { describe, it } from 'node:test'

import * as fc from 'fast-check'

import { createSeededRandom, pick, type Random, secureRandom, shuffle, uuid } from './random.ts'

const UUID_V4 = /^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/

const kinds: readonly [string, () => Random][] = [
  ['seeded random', () => createSeededRandom(42)],
  ['secure random', () => secureRandom],
]

/** Sum of (seen - expected)^2 / expected; for 15 degrees of freedom, 45 is passed about once in ten thousand runs. */
function chiSquare(counts: readonly number[]): number {
  const expected = counts.reduce((sum, count) => sum + count, 0) / counts.length
  return counts.reduce((sum, count) => sum + (count - expected) ** 2 / expected, 0)
}

for (const [name, create] of kinds) {
  describe(name, () => {
    it('draws floats in [0, 1) and integers in [0, bound)', () => {
      const random = create()
      fc.assert(
        fc.property(fc.integer({ min: 1, max: 2 ** 48 }), (bound) => {
          const float = random.float()
          assert.ok(float >= 0 && float < 1)
          const int = random.int(bound)
          assert.ok(Number.isInteger(int) && int >= 0 && int < bound)
        }),
      )
      assert.equal(random.int(1), 0)
    })

    it('fills buffers of the requested length', () => {
      for (const length of [0, 1, 16, 1000]) assert.equal(create().bytes(length).length, length)
    })

    it('makes version 4 UUIDs, all different', () => {
      const random = create()
      const made = new Set(Array.from({ length: 2000 }, () => uuid(random)))
      assert.equal(made.size, 2000)
      for (const id of made) assert.match(id, UUID_V4)
    })
  })
}

describe('seeded random', () => {
  it('yields the same sequence for the same seed, for every kind of draw', () => {
    const draws = (seed: number): unknown[] => {
      const random = createSeededRandom(seed)
      return [
        Array.from({ length: 50 }, () => random.float()),
        Array.from({ length: 50 }, () => random.int(1000)),
        random.bytes(64).toString('hex'),
        uuid(random),
        pick(random, 'abcdef', 20),
        shuffle(random, [1, 2, 3, 4, 5, 6, 7, 8]),
      ]
    }
    fc.assert(
      fc.property(fc.integer(), (seed) => assert.deepEqual(draws(seed), draws(seed))),
      { numRuns: 50 },
    )
    assert.notDeepEqual(draws(1), draws(2))
  })

  it('yields the same sequence on every machine', () => {
    const random = createSeededRandom(42)
    assert.deepEqual(
      Array.from({ length: 5 }, () => random.int(1000)),
      [153, 18, 534, 727, 572],
    )
    assert.equal(uuid(createSeededRandom(42)), '27d90436-88e1-4a70-92ce-4999d9a24db1')
  })

  it('yields unrelated sequences for neighbouring seeds', () => {
    const counts = Array.from({ length: 16 }, () => 0)
    for (let seed = 0; seed < 16_000; seed++) counts[createSeededRandom(seed).int(16)]!++
    assert.ok(chiSquare(counts) < 45)
  })

  it('draws floats, integers and bytes uniformly', () => {
    const random = createSeededRandom(7)
    const floats = Array.from({ length: 16 }, () => 0)
    const ints = Array.from({ length: 16 }, () => 0)
    const bytes = Array.from({ length: 16 }, () => 0)
    for (let left = 16_000; left > 0; left--) {
      floats[Math.floor(random.float() * 16)]!++
      ints[random.int(16)]!++
    }
    for (const byte of random.bytes(16_000)) bytes[byte >> 4]!++
    for (const counts of [floats, ints, bytes]) assert.ok(chiSquare(counts) < 45, String(counts))
  })
})

describe('secure random source', () => {
  it('yields different values each time', () => {
    assert.notDeepEqual(secureRandom.bytes(32), secureRandom.bytes(32))
    assert.notEqual(secureRandom.float(), secureRandom.float())
  })
})

describe('pick() of random items', () => {
  it('draws every character of the alphabet about equally often, and no others', () => {
    const drawn = pick(createSeededRandom(3), '0123456789abcdef', 16_000)
    const counts = Array.from({ length: 16 }, (_, digit) => drawn.split(digit.toString(16)).length - 1)
    assert.equal(
      counts.reduce((sum, count) => sum + count, 0),
      16_000,
    )
    assert.ok(chiSquare(counts) < 45)
    assert.equal(pick(secureRandom, 'abc', 0), '')
  })
})

const ascending = (a: number, b: number): number => a - b

describe('shuffle() with a random source', () => {
  it('keeps every item and does not change its argument', () => {
    fc.assert(
      fc.property(fc.array(fc.integer()), fc.integer(), (items, seed) => {
        const before = [...items]
        const mixed = shuffle(createSeededRandom(seed), items)
        assert.deepEqual(items, before)
        assert.deepEqual(mixed.toSorted(ascending), items.toSorted(ascending))
      }),
    )
  })

  it('yields each of the 24 orders of four items about equally often', () => {
    const random = createSeededRandom(5)
    const seen = new Map<string, number>()
    for (let left = 24_000; left > 0; left--) {
      const order = shuffle(random, [1, 2, 3, 4]).join('')
      seen.set(order, (seen.get(order) ?? 0) + 1)
    }
    assert.equal(seen.size, 24)
    // 23 degrees of freedom: 59 is passed about once in twenty thousand runs.
    assert.ok(chiSquare([...seen.values()]) < 59)
  })
})
