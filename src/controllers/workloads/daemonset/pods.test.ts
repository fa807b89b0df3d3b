import assert from 'node:assert/strict'
import { test } from 'node:test'

import type { DaemonSet } from '#apis/apps/v1.ts'
import type { Node, Pod } from '#apis/core/v1.ts'
import { tolerates, toleratesNumbers } from '#model/nodes/fit.ts'

import { toleratedMs } from '../../nodes/taint-eviction.ts'
import { fitOf } from './pods.ts'

const TAINTS = [{ key: 'load', value: '5', effect: 'NoExecute' }]
const TOLERATION = { key: 'load', operator: 'Lt', value: '10', effect: 'NoExecute', tolerationSeconds: 30 }

test('isTolerated() compares numeric taint values for DaemonSet pods and for evictions', () => {
  const node = { metadata: { name: 'n' }, spec: { taints: TAINTS } } as unknown as Node
  const set = { spec: { template: { spec: { containers: [], tolerations: [TOLERATION] } } } } as unknown as DaemonSet
  assert.deepEqual(fitOf(set, node, toleratesNumbers), { shouldRun: true, mayStay: true })
  assert.deepEqual(fitOf(set, node, tolerates), { shouldRun: false, mayStay: false })
  const pod = { spec: { tolerations: [TOLERATION] } } as unknown as Pod
  assert.equal(toleratedMs(pod, TAINTS, toleratesNumbers), 30_000)
  assert.equal(toleratedMs(pod, TAINTS), undefined)
})
