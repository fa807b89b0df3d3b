import assert from 'node:assert/strict'
import { test } from 'node:test'

import type { Node } from '#apis/core/v1.ts'

import { type ClusterSize, type Linear, replicasFor, sizeOf } from './proportional-autoscaler.ts'

const RULE = { coresPerReplica: 128, nodesPerReplica: 4, min: 1, preventSinglePointFailure: true }

const CASES: readonly (readonly [what: string, rule: Linear, size: ClusterSize, replicas: number])[] = [
  ['one replica for one node', RULE, { nodes: 1, cores: 4 }, 1],
  ['two replicas for two nodes, because one may fail', RULE, { nodes: 2, cores: 4 }, 2],
  ['replicas in proportion to nodes', RULE, { nodes: 13, cores: 26 }, 4],
  ['replicas in proportion to CPUs', RULE, { nodes: 2, cores: 1024 }, 8],
  ['at most max replicas', { ...RULE, max: 3 }, { nodes: 100, cores: 400 }, 3],
  ['at least min replicas', { ...RULE, min: 5 }, { nodes: 2, cores: 2 }, 5],
  ['one replica for two nodes without preventSinglePointFailure', { nodesPerReplica: 4 }, { nodes: 2, cores: 2 }, 1],
  ['one replica if the parameters are empty', {}, { nodes: 9, cores: 9 }, 1],
]

for (const [what, rule, size, replicas] of CASES)
  test(`the proportional autoscaler sets ${what}`, () => assert.equal(replicasFor(rule, size), replicas))

test('the proportional autoscaler ignores cordoned nodes', () => {
  const node = (cpu: string, unschedulable: boolean): Node =>
    ({ metadata: {}, spec: { unschedulable }, status: { allocatable: { cpu } } }) as unknown as Node
  assert.deepEqual(sizeOf([node('1900m', false), node('2', false), node('64', true)]), { nodes: 2, cores: 3.9 })
})
