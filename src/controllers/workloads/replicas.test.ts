import assert from 'node:assert/strict'
import { describe, it } from 'node:test'

import type { Pod } from '#apis/core/v1.ts'

import { decidingCriterion, planReplicas } from './replicas.ts'

const NOW_MS = Date.UTC(2026, 0, 2)

interface PodParts {
  readonly uid?: string
  readonly node?: string
  readonly phase?: string
  readonly ready?: boolean
  readonly readySince?: string
  readonly restarts?: number
  readonly created?: string
  readonly cost?: string
}

function pod(name: string, parts: PodParts = {}): Pod {
  const { uid = name, node = 'node-1', phase = 'Running', ready = true, restarts = 0, cost } = parts
  const { readySince = '2026-01-01T00:00:00Z', created = '2026-01-01T00:00:00Z' } = parts
  const annotations = cost === undefined ? {} : { 'controller.kubernetes.io/pod-deletion-cost': cost }
  return {
    metadata: { namespace: 'ns', name, uid, creationTimestamp: created, annotations },
    spec: { nodeName: node },
    status: {
      phase,
      conditions: [{ type: 'Ready', status: ready ? 'True' : 'False', lastTransitionTime: readySince }],
      containerStatuses: [{ name: 'app', restartCount: restarts }],
    },
  } as unknown as Pod
}

describe('decidingCriterion()', () => {
  const rows: readonly (readonly [text: string, first: PodParts, other: PodParts])[] = [
    ['it had no node', { node: '' }, {}],
    ['it had not started yet', { phase: 'Pending' }, {}],
    ['it was not ready', { ready: false }, {}],
    ['its deletion cost was lower', { cost: '-1' }, {}],
    ['it had been ready for a shorter time', { readySince: '2026-01-01T23:59:00Z' }, {}],
    ['its containers had restarted more often', { restarts: 2 }, {}],
    ['it was younger', { created: '2026-01-01T23:59:00Z' }, {}],
    ['its uid comes first, and nothing else distinguished the pods', { uid: 'a' }, { uid: 'b' }],
  ]
  for (const [text, first, other] of rows) {
    it(`finds: ${text}`, () => {
      const pods = [pod('other', other), pod('first', first)]
      const [, victim] = pods as [Pod, Pod]
      assert.deepEqual(planReplicas(1, pods, pods, NOW_MS).surplus, [victim])
      assert.equal(decidingCriterion(victim, pods[0] as Pod, pods, NOW_MS)?.text, text)
      assert.equal(decidingCriterion(pods[0] as Pod, victim, pods, NOW_MS), undefined)
    })
  }

  it('counts the pods of the set on a node', () => {
    const pods = [pod('a', { node: 'full' }), pod('b', { node: 'full' }), pod('c', { node: 'empty' })]
    const [victim] = planReplicas(2, pods, pods, NOW_MS).surplus
    assert.equal(victim?.spec.nodeName, 'full')
    assert.equal(decidingCriterion(victim, pods[2] as Pod, pods, NOW_MS)?.text, 'its node had more pods of the set')
  })
})
