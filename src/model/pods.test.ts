import assert from 'node:assert/strict'
import { describe, it } from 'node:test'

import type { Container, PodCondition, PodStatus } from '#apis/core/v1.ts'

import { allMayRestart, isActive, isAvailable, isReady, isScheduled, isTerminal, shouldRestart } from './pods.ts'

const ready = (status: string, lastTransitionTime: string | null = null): { status: PodStatus } => {
  const condition: PodCondition = { type: 'Ready', status, lastProbeTime: null, lastTransitionTime }
  return { status: { conditions: [condition] } }
}

describe('predicates of pods', () => {
  it('recognize a ready pod by its condition', () => {
    assert.equal(isReady(ready('True')), true)
    assert.equal(isReady(ready('False')), false)
    assert.equal(isReady({ status: {} }), false)
  })

  it('recognize an available pod, which was ready for the minimum time', () => {
    const since = ready('True', '2024-01-01T00:00:00Z')
    const at = (seconds: number): number => Date.UTC(2024, 0, 1) + seconds * 1000
    assert.equal(isAvailable(since, 10, at(9)), false)
    assert.equal(isAvailable(since, 10, at(10)), true)
    assert.equal(isAvailable(ready('True'), 0, 0), true)
    assert.equal(isAvailable(ready('True'), 1, at(99)), false)
    assert.equal(isAvailable(ready('False', '2024-01-01T00:00:00Z'), 0, at(99)), false)
  })

  it('recognize an active pod, which has neither ended nor been deleted', () => {
    assert.equal(isActive({ status: { phase: 'Running' }, metadata: {} }), true)
    assert.equal(isActive({ status: { phase: 'Failed' }, metadata: {} }), false)
    assert.equal(isActive({ status: {}, metadata: { deletionTimestamp: '2024-01-01T00:00:00Z' } }), false)
    assert.equal(isTerminal({ status: { phase: 'Succeeded' } }), true)
  })

  it('recognize a scheduled pod by its node', () => {
    assert.equal(isScheduled({ spec: { containers: [], nodeName: 'n' } }), true)
    assert.equal(isScheduled({ spec: { containers: [] } }), false)
  })

  const rule = { action: 'Restart', exitCodes: { operator: 'In', values: [42] } }
  const policies: readonly [own: Partial<Container>, pod: string, exitCode: number, restarts: boolean][] = [
    [{}, 'Always', 0, true],
    [{}, 'OnFailure', 0, false],
    [{}, 'OnFailure', 1, true],
    [{}, 'Never', 1, false],
    [{ restartPolicy: 'Never' }, 'Always', 1, false],
    [{ restartPolicy: 'Always' }, 'Never', 0, true],
    [{ restartPolicy: 'Never', restartPolicyRules: [rule] }, 'Never', 42, true],
    [{ restartPolicy: 'Never', restartPolicyRules: [rule] }, 'Never', 43, false],
    [
      { restartPolicy: 'Never', restartPolicyRules: [{ ...rule, exitCodes: { operator: 'NotIn', values: [42] } }] },
      'Never',
      43,
      true,
    ],
    [{ restartPolicyRules: [rule] }, 'Never', 42, false],
  ]
  for (const [own, restartPolicy, exitCode, restarts] of policies) {
    it(`${restarts ? 'restart' : 'do not restart'} container ${JSON.stringify(own)} in a pod with restartPolicy ${restartPolicy} after exit code ${exitCode}`, () => {
      const container: Container = { name: 'a', resources: {}, ...own }
      assert.equal(shouldRestart(container, { containers: [container], restartPolicy }, exitCode), restarts)
    })
  }

  it('recognize a container whose rules may restart all containers', () => {
    const container: Container = { name: 'a', resources: {}, restartPolicyRules: [{ action: 'RestartAllContainers' }] }
    assert.equal(allMayRestart({ containers: [], initContainers: [container] }), true)
    assert.equal(allMayRestart({ containers: [] }), false)
  })
})
