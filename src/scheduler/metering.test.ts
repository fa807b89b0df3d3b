import assert from 'node:assert/strict'
import { describe, it } from 'node:test'

import { type Node, Nodes } from '#apis/core/v1.ts'
import { CSINodes } from '#apis/storage/v1.ts'
import { createVirtualClock } from '#lib/clock.ts'
import { createRegistry } from '#lib/metrics.ts'
import { createSeededRandom } from '#lib/random.ts'

import { Cluster } from './cluster.ts'
import { Decider } from './decision.ts'
import { type Plugin, unschedulable } from './framework.ts'
import { MeteredDecider, meteredProfile } from './metering.ts'
import { registerSchedulerMetrics } from './meters.ts'
import { labelOf, newsOf, newsOfNode, newsOfPod } from './news.ts'
import { Nominations } from './nominations.ts'
import { PodInfo } from './pod-info.ts'
import type { Profile } from './profile.ts'

const podOf = (labels: Record<string, string> = {}): PodInfo =>
  new PodInfo({ metadata: { namespace: 'd', name: 'p', uid: 'p', labels }, spec: { containers: [] }, status: {} })

function profileOf(plugins: Readonly<Record<string, Plugin>>): Profile {
  const all = Object.entries(plugins).map(([name, plugin]) => ({ name, plugin }))
  const with_ = (member: keyof Plugin): typeof all => all.filter(({ plugin }) => plugin[member] !== undefined)
  const none = { preEnqueue: [], postFilter: [], reserve: [], permit: [], preBind: [], bind: [], postBind: [] }
  return {
    name: 'own',
    plugins: all,
    queueSort: { name: '', plugin: {} },
    preFilter: with_('preFilter'),
    filter: with_('filter'),
    score: with_('score').map((one) => ({ ...one, weight: 1 })),
    percentageOfNodesToScore: 0,
    ...none,
  }
}

describe('a decision that is timed', () => {
  const profile = profileOf({
    First: { preFilter: () => ({}), filter: (_, { name }) => (name === 'n0' ? unschedulable('no') : undefined) },
    Second: { filter: () => undefined, score: (_, { name }) => (name === 'n2' ? 9 : 1) },
  })
  const cluster = new Cluster(() => ({}))
  for (const name of ['n0', 'n1', 'n2']) cluster.setNode({ metadata: { name }, spec: {}, status: {} } as Node)
  const registry = createRegistry()
  const meter = registerSchedulerMetrics(registry)
  const clock = createVirtualClock()
  const parts = { cluster, nominations: new Nominations(), random: createSeededRandom(1), clock, meter }

  it('is the same, and tells whom it asked how often', () => {
    const plain = new Decider(profile, parts).search(podOf())
    const decider = new MeteredDecider(meteredProfile(profile, parts), parts)
    const timed = decider.search(podOf())
    assert.deepEqual(
      timed.feasible.map(({ name }) => name),
      plain.feasible.map(({ name }) => name),
    )
    assert.equal(decider.best(timed).name, 'n2')
    const told = registry.render().split('\n')
    for (const line of [
      'scheduler_plugin_evaluation_total{extension_point="PreFilter",plugin="First",profile="own"} 1',
      'scheduler_plugin_evaluation_total{extension_point="Filter",plugin="First",profile="own"} 3',
      'scheduler_plugin_evaluation_total{extension_point="Filter",plugin="Second",profile="own"} 2',
      'scheduler_plugin_evaluation_total{extension_point="Score",plugin="Second",profile="own"} 2',
      'scheduler_framework_extension_point_duration_seconds_count{extension_point="Filter",profile="own",status="Success"} 1',
      'scheduler_plugin_execution_duration_seconds_count{extension_point="Score",plugin="Second",status="Success"} 1',
    ])
      assert.ok(told.includes(line), line)
  })
})

describe('what news are called', () => {
  const node = (unschedulable?: boolean): never => ({ metadata: {}, spec: { unschedulable }, status: {} }) as never
  const rows: readonly [news: Parameters<typeof labelOf>[0] | undefined, label: string][] = [
    [newsOfNode(Nodes, node(), undefined), 'NodeAdd'],
    [newsOfNode(Nodes, node(true), node()), 'NodeUpdateNodeTaint'],
    [newsOf(CSINodes, node(), node()), 'storage.k8s.io/CSINodeUpdate'],
    [newsOfPod('AssignedPod', undefined, podOf().pod), 'AssignedPodDelete'],
    [newsOfPod('TargetPod', podOf({ a: 'b' }).pod, podOf().pod), 'UnschedulablePodUpdatePodLabel'],
    [newsOfPod('TargetPod', podOf().pod, podOf().pod), 'UnschedulablePodUpdate'],
  ]
  for (const [news, label] of rows)
    it(label, () => {
      assert.ok(news)
      assert.equal(labelOf(news), label)
    })
})
