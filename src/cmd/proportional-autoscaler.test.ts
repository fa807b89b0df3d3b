import assert from 'node:assert/strict'
import { test } from 'node:test'

import type { Node } from '#apis/core/v1.ts'

import { type ClusterSize, type Linear, replicasFor, sizeOf } from './proportional-autoscaler.ts'

const RULE = { coresPerReplica: 128, nodesPerReplica: 4, min: 1, preventSinglePointFailure: true }

const CASES: readonly (readonly [what: string, rule: Linear, size: ClusterSize, replicas: number])[] = [
  ['one node has one', RULE, { nodes: 1, cores: 4 }, 1],
  ['two nodes have two, so that one may go', RULE, { nodes: 2, cores: 4 }, 2],
  ['nodes count', RULE, { nodes: 13, cores: 26 }, 4],
  ['processors count', RULE, { nodes: 2, cores: 1024 }, 8],
  ['never more than the limit', { ...RULE, max: 3 }, { nodes: 100, cores: 400 }, 3],
  ['never fewer than asked', { ...RULE, min: 5 }, { nodes: 2, cores: 2 }, 5],
  ['without the guard one is enough', { nodesPerReplica: 4 }, { nodes: 2, cores: 2 }, 1],
  ['an empty rule means one', {}, { nodes: 9, cores: 9 }, 1],
]

for (const [what, rule, size, replicas] of CASES)
  test(`replicas: ${what}`, () => assert.equal(replicasFor(rule, size), replicas))

test('nodes that are cordoned do not count', () => {
  const node = (cpu: string, unschedulable: boolean): Node =>
    ({ metadata: {}, spec: { unschedulable }, status: { allocatable: { cpu } } }) as unknown as Node
  assert.deepEqual(sizeOf([node('1900m', false), node('2', false), node('64', true)]), { nodes: 2, cores: 3.9 })
})
