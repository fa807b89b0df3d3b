import assert from 'node:assert/strict'
import { describe, it } from 'node:test'

import type { Pod, ResourceRequirements } from '#apis/core/v1.ts'

import { type Candidate, choosePreempted, mayPreempt } from './preemption.ts'

const podOf = (name: string, resources: ResourceRequirements = {}, priority?: number): Pod => ({
  metadata: { name },
  spec: { containers: [{ name: 'c', resources }], ...(priority !== undefined && { priority }) },
  status: {},
})

function candidate(name: string, qos: 'none' | 'some' | 'all', cpu: number, memory = 0): Candidate {
  const amounts = { cpu: `${cpu}m`, memory: String(memory || 1) }
  const resources = { none: {}, some: { requests: amounts }, all: { requests: amounts, limits: amounts } }
  const takes =
    qos === 'none'
      ? []
      : ([
          ['cpu', cpu],
          ['memory', memory],
        ] as const)
  return { pod: podOf(name, resources[qos]), takes: new Map([['pods', 1], ...takes]) }
}

const chosen = (missing: Record<string, number>, ...candidates: Candidate[]): string[] | undefined =>
  choosePreempted(new Map(Object.entries(missing)), candidates)?.map(({ pod }) => pod.metadata.name ?? '')

describe('kubelet preemption for a critical pod', () => {
  it('spares Guaranteed pods if other pods free enough resources', () => {
    const all = [candidate('g', 'all', 500), candidate('b1', 'some', 300), candidate('b2', 'some', 300)]
    assert.deepEqual(chosen({ cpu: 500 }, ...all), ['b1', 'b2'])
    assert.deepEqual(chosen({ cpu: 700 }, ...all), ['b1', 'g'])
  })

  it('selects the pod closest to the missing amount, and the smaller one on a tie', () => {
    assert.deepEqual(chosen({ cpu: 300 }, candidate('a', 'some', 100), candidate('b', 'some', 300)), ['b'])
    assert.deepEqual(chosen({ cpu: 200 }, candidate('a', 'some', 400, 9), candidate('b', 'some', 300, 5)), ['b'])
  })

  it('selects a BestEffort pod if only the pod count is exceeded', () => {
    assert.deepEqual(chosen({ pods: 1 }, candidate('b', 'some', 100), candidate('n', 'none', 0)), ['n'])
  })

  it('selects no pod if all together do not free enough resources', () => {
    assert.equal(chosen({ cpu: 500 }, candidate('b', 'some', 300)), undefined)
  })

  it('selects pods that are not critical or have a lower priority', () => {
    const critical = podOf('c', {}, 2_000_000_000)
    assert.equal(mayPreempt(critical, podOf('p', {}, 10)), true)
    assert.equal(mayPreempt(critical, podOf('p')), true)
    assert.equal(mayPreempt(critical, podOf('p', {}, 2_000_000_000)), false)
    assert.equal(mayPreempt(podOf('p'), podOf('q')), false)
  })
})
