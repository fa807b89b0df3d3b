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

describe('scoring strategies of NodeResourcesFit', () => {
  const rows: readonly [what: string, got: number, expected: number][] = [
    [
      'LeastAllocated gives an empty node the best score',
      scored(least, [
        [4000, 0],
        [100, 0],
      ]),
      100,
    ],
    [
      'LeastAllocated gives 50 if half of each resource is used',
      scored(least, [
        [4000, 2000],
        [100, 50],
      ]),
      50,
    ],
    [
      'LeastAllocated rounds the mean down at each step',
      scored(least, [
        [3000, 1000],
        [3, 2],
      ]),
      Math.floor((66 + 33) / 2),
    ],
    [
      'LeastAllocated gives 0 for overcommitment',
      scored(least, [
        [4000, 5000],
        [100, 0],
      ]),
      50,
    ],
    [
      'LeastAllocated ignores a resource that the node lacks',
      scored(least, [
        [0, 0],
        [100, 25],
      ]),
      75,
    ],
    [
      'LeastAllocated uses the weights of resources',
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
      'MostAllocated gives a full node the best score',
      scored(most, [
        [4000, 4000],
        [100, 100],
      ]),
      100,
    ],
    [
      'MostAllocated treats overcommitment as a full node',
      scored(most, [
        [4000, 9000],
        [100, 0],
      ]),
      50,
    ],
    [
      'RequestedToCapacityRatio uses the score at a point of the shape',
      scored(ratio, [
        [100, 50],
        [100, 50],
      ]),
      100,
    ],
    [
      'RequestedToCapacityRatio interpolates between two points of the shape',
      scored(ratio, [
        [100, 75],
        [100, 75],
      ]),
      60,
    ],
    [
      'RequestedToCapacityRatio uses the last point for a higher utilization',
      scored(ratio, [
        [100, 500],
        [100, 500],
      ]),
      20,
    ],
    [
      'RequestedToCapacityRatio ignores a resource with score 0',
      scored(ratio, [
        [100, 0],
        [100, 50],
      ]),
      100,
    ],
    [
      'give 0 without resources',
      scored(least, [
        [0, 0],
        [0, 0],
      ]),
      0,
    ],
  ]
  for (const [what, got, expected] of rows) it(what, () => assert.equal(got, expected))
})

describe('balanceScore() of NodeResourcesBalancedAllocation', () => {
  const balanced = (...parts: readonly (readonly [all: number, before: number, after: number])[]): number =>
    balanceScore(parts.map(([all, before, after]) => ({ all, before, after })))
  const rows: readonly [what: string, got: number, expected: number][] = [
    ['is 75 if the balance stays the same', balanced([100, 50, 50], [100, 50, 50]), 75],
    ['is higher if the pod improves the balance', balanced([100, 50, 50], [100, 0, 50]), 87],
    ['is lower if the pod worsens the balance', balanced([100, 0, 50], [100, 0, 0]), 62],
    ['is 75 with only one resource', balanced([100, 0, 90]), 75],
    ['treats overcommitment as full', balanced([100, 0, 400], [100, 0, 100]), 75],
  ]
  for (const [what, got, expected] of rows) it(what, () => assert.equal(got, expected))
})
