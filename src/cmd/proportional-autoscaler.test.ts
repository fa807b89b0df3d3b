import assert from 'node:assert/strict'
import { test } from 'node:test'

import type { Node } from '#apis/core/v1.ts'

import { type ClusterSize, type Linear, replicasFor, sizeOf } from './proportional-autoscaler.ts'

const RULE = { coresPerReplica: 128, nodesPerReplica: 4, min: 1, preventSinglePointFailure: true }

const CASES: readonly (readonly [what: string, rule: Linear, size: ClusterSize, replicas: number])[] = [
  ['one node has one replica', RULE, { nodes: 1, cores: 4 }, 1],
  ['two nodes have two replicas, so that one may fail', RULE, { nodes: 2, cores: 4 }, 2],
  ['nodes count', RULE, { nodes: 13, cores: 26 }, 4],
  ['processors count', RULE, { nodes: 2, cores: 1024 }, 8],
  ['the maximum is respected', { ...RULE, max: 3 }, { nodes: 100, cores: 400 }, 3],
  ['the minimum is respected', { ...RULE, min: 5 }, { nodes: 2, cores: 2 }, 5],
  ['one replica suffices without preventSinglePointFailure', { nodesPerReplica: 4 }, { nodes: 2, cores: 2 }, 1],
  ['empty parameters mean one replica', {}, { nodes: 9, cores: 9 }, 1],
]

for (const [what, rule, size, replicas] of CASES)
  test(`replicas: ${what}`, () => assert.equal(replicasFor(rule, size), replicas))

test('ignores cordoned nodes', () => {
  const node = (cpu: string, unschedulable: boolean): Node =>
    ({ metadata: {}, spec: { unschedulable }, status: { allocatable: { cpu } } }) as unknown as Node
  assert.deepEqual(sizeOf([node('1900m', false), node('2', false), node('64', true)]), { nodes: 2, cores: 3.9 })
})
