import assert from 'node:assert/strict'
import { describe, it } from 'node:test'

import { type Allocation, balanceScore, type Strategy, strategyScore } from './resource-scores.ts'

const CPU_AND_MEMORY = [
  { name: 'cpu', weight: 1 },
  { name: 'memory', weight: 1 },
]
const SHAPE = [
  { utilization: 0, score: 0 },
  { utilization: 50, score: 10 },
  { utilization: 100, score: 2 },
]
const least: Strategy = { type: 'LeastAllocated' }
const most: Strategy = { type: 'MostAllocated' }
const ratio: Strategy = { type: 'RequestedToCapacityRatio', requestedToCapacityRatio: { shape: SHAPE } }

/** `[all, after]` of each resource. */
function scored(strategy: Strategy, parts: readonly (readonly [number, number])[], weights = [1, 1]): number {
  const resources = CPU_AND_MEMORY.map((one, at) => ({ ...one, weight: weights[at] ?? 1 }))
  const allocations = parts.map(([all, after]): Allocation => ({ all, before: 0, after }))
  return strategyScore(strategy, resources, allocations)
}

describe('points for what would be taken', () => {
  const rows: readonly [what: string, got: number, expected: number][] = [
    [
      'least: an empty node is best',
      scored(least, [
        [4000, 0],
        [100, 0],
      ]),
      100,
    ],
    [
      'least: half of each',
      scored(least, [
        [4000, 2000],
        [100, 50],
      ]),
      50,
    ],
    [
      'least: the mean, rounded down at each step',
      scored(least, [
        [3000, 1000],
        [3, 2],
      ]),
      Math.floor((66 + 33) / 2),
    ],
    [
      'least: more than there is gives nothing',
      scored(least, [
        [4000, 5000],
        [100, 0],
      ]),
      50,
    ],
    [
      'least: what the node has none of does not count',
      scored(least, [
        [0, 0],
        [100, 25],
      ]),
      75,
    ],
    [
      'least: by weight',
      scored(
        least,
        [
          [100, 0],
          [100, 100],
        ],
        [3, 1],
      ),
      75,
    ],
    [
      'most: a full node is best',
      scored(most, [
        [4000, 4000],
        [100, 100],
      ]),
      100,
    ],
    [
      'most: more than there is counts as full',
      scored(most, [
        [4000, 9000],
        [100, 0],
      ]),
      50,
    ],
    [
      'ratio: at a point of the shape',
      scored(ratio, [
        [100, 50],
        [100, 50],
      ]),
      100,
    ],
    [
      'ratio: between two points',
      scored(ratio, [
        [100, 75],
        [100, 75],
      ]),
      60,
    ],
    [
      'ratio: over the end as at the end',
      scored(ratio, [
        [100, 500],
        [100, 500],
      ]),
      20,
    ],
    [
      'ratio: what gives no points does not count',
      scored(ratio, [
        [100, 0],
        [100, 50],
      ]),
      100,
    ],
    [
      'nothing to compare',
      scored(least, [
        [0, 0],
        [0, 0],
      ]),
      0,
    ],
  ]
  for (const [what, got, expected] of rows) it(what, () => assert.equal(got, expected))
})

describe('points for balance', () => {
  const balanced = (...parts: readonly (readonly [all: number, before: number, after: number])[]): number =>
    balanceScore(parts.map(([all, before, after]) => ({ all, before, after })))
  const rows: readonly [what: string, got: number, expected: number][] = [
    ['75 where nothing changes', balanced([100, 50, 50], [100, 50, 50]), 75],
    ['more where the pod evens things out', balanced([100, 50, 50], [100, 0, 50]), 87],
    ['less where it makes them uneven', balanced([100, 0, 50], [100, 0, 0]), 62],
    ['75 where there is only one resource', balanced([100, 0, 90]), 75],
    ['more than all counts as all', balanced([100, 0, 400], [100, 0, 100]), 75],
  ]
  for (const [what, got, expected] of rows) it(what, () => assert.equal(got, expected))
})
