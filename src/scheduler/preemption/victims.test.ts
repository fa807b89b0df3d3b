import assert from 'node:assert/strict'
import { describe, it } from 'node:test'

import type { Pod } from '#apis/core/v1.ts'

import { NodeInfo } from '../cluster/node-info.ts'
import { PodInfo } from '../cluster/pod-info.ts'
import type { Candidate, FilterRunner } from '../framework/framework.ts'
import { budgetOf, leastHarm, VictimMemory, victimsOn } from './victims.ts'

interface PodFields {
  readonly priority?: number
  readonly cpu?: number
  readonly startTime?: string
  readonly labels?: Record<string, string>
}

function podOf(name: string, { priority = 0, cpu = 1, startTime, labels = {} }: PodFields = {}): PodInfo {
  const pod: Pod = {
    metadata: { namespace: 'ns', name, uid: name, labels },
    spec: { priority, containers: [{ name: 'c', resources: { requests: { cpu: String(cpu) } } }] },
    status: { ...(startTime !== undefined && { startTime }) },
  }
  return new PodInfo(pod)
}

/** Accepts a node if four CPUs suffice for all pods. */
const filterRunner: FilterRunner = {
  filterWithNominated: (pod, { requested }) =>
    requested.cpu + pod.requests.cpu > 4000
      ? { code: 'unschedulable', reasons: ['Insufficient cpu'], plugin: 'NodeResourcesFit' }
      : undefined,
}

function nodeWith(...pods: readonly PodInfo[]): NodeInfo {
  const node = new NodeInfo('n', 0)
  for (const pod of pods) node.add(pod)
  return node
}

function budget(allowed: number, labels: Record<string, string>, spentOn: Record<string, string> = {}) {
  const made = budgetOf({
    metadata: { namespace: 'ns', name: 'b' },
    spec: { selector: { matchLabels: labels } },
    status: {
      disruptionsAllowed: allowed,
      disruptedPods: spentOn,
      currentHealthy: 0,
      desiredHealthy: 0,
      expectedPods: 0,
    },
  })
  assert.ok(made)
  return made
}

describe('victimsOn() for a node', () => {
  const strong = podOf('strong', { priority: 100, cpu: 2 })
  const chosen = (node: NodeInfo, budgets: ReturnType<typeof budget>[] = []): [string[], number] | string => {
    const found = victimsOn({ pod: strong, cycleState: new Map() }, node, budgets, filterRunner)
    return 'code' in found ? found.reasons.join() : [found.victims.map(({ uid }) => uid), found.violations]
  }

  it('selects as few pods as possible: lowest priority first, then the latest start', () => {
    const node = nodeWith(
      podOf('a', { priority: 2 }),
      podOf('b', { priority: 1, startTime: '2026-01-01T00:00:00Z' }),
      podOf('c', { priority: 1, startTime: '2026-01-02T00:00:00Z' }),
      podOf('d', { priority: 1 }),
    )
    assert.deepEqual(chosen(node), [['c', 'd'], 0])
  })

  it('never selects pods of equal or higher priority', () => {
    assert.equal(
      chosen(nodeWith(podOf('a', { priority: 100, cpu: 4 }))),
      'No preemption victims found for incoming pod',
    )
  })

  it('returns the rejection if preemption of all candidates does not help', () => {
    const node = nodeWith(podOf('a', { priority: 100, cpu: 3 }), podOf('b'))
    assert.equal(chosen(node), 'Insufficient cpu')
  })

  it('spares pods that a PodDisruptionBudget protects, even with lower priority', () => {
    const node = nodeWith(
      podOf('a', { priority: 1, cpu: 2, labels: { app: 'x' } }),
      podOf('b', { priority: 5, cpu: 2 }),
    )
    assert.deepEqual(chosen(node), [['a'], 0])
    assert.deepEqual(chosen(node, [budget(0, { app: 'x' })]), [['b'], 0])
    assert.deepEqual(chosen(node, [budget(1, { app: 'x' })]), [['a'], 0])
    assert.deepEqual(chosen(node, [budget(0, { app: 'x' }, { a: '2026-01-01T00:00:00Z' })]), [['a'], 0])
  })

  it('selects pods that a PodDisruptionBudget protects as a last resort, and counts the violations', () => {
    const labels = { app: 'x' }
    const node = nodeWith(podOf('a', { cpu: 2, labels }), podOf('b', { cpu: 2, labels }))
    assert.deepEqual(chosen(node, [budget(0, labels)]), [['b'], 1])
  })
})

describe('VictimMemory of preemption', () => {
  it('searches again for other pods and after changes of the node', () => {
    const memory = new VictimMemory()
    const node = nodeWith(podOf('a', { cpu: 4 }))
    let looked = 0
    const recall = (pod: PodInfo) =>
      memory.recall(pod, node, () => {
        looked++
        return victimsOn({ pod, cycleState: new Map() }, node, [], filterRunner)
      })
    const first = recall(podOf('p', { priority: 5 }))
    assert.equal(recall(podOf('q', { priority: 5 })), first)
    assert.equal(looked, 1)
    recall(podOf('q', { priority: 6 }))
    recall(podOf('q', { priority: 5, cpu: 2 }))
    assert.equal(looked, 3)
    node.add(podOf('b', { priority: 9, cpu: 4 }))
    assert.deepEqual(recall(podOf('p', { priority: 5 })), {
      code: 'unschedulable',
      reasons: ['Insufficient cpu'],
      plugin: 'NodeResourcesFit',
    })
  })
})

describe('leastHarm() of preemption candidates', () => {
  const at = (node: string, violations: number, ...victims: readonly PodInfo[]): Candidate => ({
    node,
    violations,
    victims,
  })
  const rows: readonly [rule: string, best: Candidate, other: Candidate][] = [
    ['the fewest violated PodDisruptionBudgets', at('a', 0, podOf('x', { priority: 9 })), at('b', 1, podOf('x'))],
    [
      'the lowest priority of its highest victim',
      at('a', 0, podOf('x'), podOf('y')),
      at('b', 0, podOf('x', { priority: 1 })),
    ],
    [
      'the lowest sum of priorities',
      at('a', 0, podOf('x', { priority: 2 }), podOf('y')),
      at('b', 0, podOf('x', { priority: 2 }), podOf('y', { priority: 1 })),
    ],
    [
      'fewer victims, even with negative priorities',
      at('a', 0, podOf('x', { priority: -5 })),
      at('b', 0, podOf('x', { priority: -5 }), podOf('y', { priority: -5 })),
    ],
    [
      'the latest start of its highest-priority victim',
      at('a', 0, podOf('x', { startTime: '2026-01-02T00:00:00Z' })),
      at('b', 0, podOf('x', { startTime: '2026-01-01T00:00:00Z' })),
    ],
  ]
  for (const [rule, best, other] of rows) {
    it(`prefers the candidate with ${rule}`, () => {
      assert.equal(leastHarm([best, other])?.node, 'a')
      assert.equal(leastHarm([other, best])?.node, 'a')
    })
  }

  it('selects the first of equal candidates', () => {
    assert.equal(leastHarm([at('a', 0, podOf('x')), at('b', 0, podOf('x'))])?.node, 'a')
  })
})
