import assert from 'node:assert/strict'
import { describe, it } from 'node:test'

import type { Node } from '#apis/core/v1.ts'
import { admit } from '#kits/admission/sample-write.ts'

import { taintNodesByCondition } from './taint-nodes-by-condition.ts'

describe('TaintNodesByCondition', () => {
  it('adds the not-ready taint to a new node once', async () => {
    const taint = { key: 'node.kubernetes.io/not-ready', effect: 'NoSchedule' }
    const fresh = (await admit(taintNodesByCondition, {
      resource: 'nodes',
      object: { metadata: { name: 'n' } },
    })) as Node
    assert.deepEqual(fresh.spec.taints, [taint])
    const again = (await admit(taintNodesByCondition, { resource: 'nodes', object: fresh })) as Node
    assert.deepEqual(again.spec.taints, [taint])
  })
})
