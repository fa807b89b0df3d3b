import assert from 'node:assert/strict'
import { describe, it } from 'node:test'

import { nextStep } from './ttl.ts'

const CASES: readonly (readonly [from: number, nodes: number, to: number])[] = [
  [0, 100, 0],
  [0, 101, 1],
  [1, 90, 1],
  [1, 89, 0],
  [0, 5000, 4],
  [4, 1799, 3],
  [4, 10, 0],
]

describe('nextStep() of the TTL annotation', () => {
  for (const [from, nodes, to] of CASES) {
    it(`changes step ${from} to ${to} with ${nodes} nodes`, () => assert.equal(nextStep(from, nodes), to))
  }
})
