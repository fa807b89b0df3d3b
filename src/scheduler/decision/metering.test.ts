import assert from 'node:assert/strict'
import { describe, it } from 'node:test'

import { type Node, Nodes } from '#apis/core/v1.ts'
import { CSINodes } from '#apis/storage/v1.ts'
import { createVirtualClock } from '#lib/clock.ts'
import { createRegistry } from '#lib/metrics/metrics.ts'
import { createSeededRandom } from '#lib/random.ts'

import { Cluster } from '../cluster/cluster.ts'
import { Nominations } from '../cluster/nominations.ts'
import { PodInfo } from '../cluster/pod-info.ts'
import { type Plugin, unschedulable } from '../framework/framework.ts'
import type { Profile } from '../framework/profile.ts'
import { labelOf, nodeEvent, objectEvent, podEvent } from '../queue/cluster-events.ts'
import { Decider } from './decision.ts'
import { MeteredDecider, meteredProfile } from './metering.ts'
import { registerSchedulerMetrics } from './meters.ts'

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

describe('MeteredDecider', () => {
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

  it('makes the same decision as Decider and counts the calls of each plugin', () => {
    const plain = new Decider(profile, parts).search(podOf())
    const decider = new MeteredDecider(meteredProfile(profile, parts), parts)
    const timed = decider.search(podOf())
    assert.deepEqual(
      timed.feasible.map(({ name }) => name),
      plain.feasible.map(({ name }) => name),
    )
    assert.equal(decider.best(timed).name, 'n2')
    const rendered = registry.render().split('\n')
    for (const line of [
      'scheduler_plugin_evaluation_total{extension_point="PreFilter",plugin="First",profile="own"} 1',
      'scheduler_plugin_evaluation_total{extension_point="Filter",plugin="First",profile="own"} 3',
      'scheduler_plugin_evaluation_total{extension_point="Filter",plugin="Second",profile="own"} 2',
      'scheduler_plugin_evaluation_total{extension_point="Score",plugin="Second",profile="own"} 2',
      'scheduler_framework_extension_point_duration_seconds_count{extension_point="Filter",profile="own",status="Success"} 1',
      'scheduler_plugin_execution_duration_seconds_count{extension_point="Score",plugin="Second",status="Success"} 1',
    ])
      assert.ok(rendered.includes(line), line)
  })
})

describe('labels of cluster events', () => {
  const node = (unschedulable?: boolean): never => ({ metadata: {}, spec: { unschedulable }, status: {} }) as never
  const rows: readonly [event: Parameters<typeof labelOf>[0] | undefined, label: string][] = [
    [nodeEvent(Nodes, node(), undefined), 'NodeAdd'],
    [nodeEvent(Nodes, node(true), node()), 'NodeUpdateNodeTaint'],
    [objectEvent(CSINodes, node(), node()), 'storage.k8s.io/CSINodeUpdate'],
    [podEvent('AssignedPod', undefined, podOf().pod), 'AssignedPodDelete'],
    [podEvent('TargetPod', podOf({ a: 'b' }).pod, podOf().pod), 'UnschedulablePodUpdatePodLabel'],
    [podEvent('TargetPod', podOf().pod, podOf().pod), 'UnschedulablePodUpdate'],
  ]
  for (const [event, label] of rows)
    it(`include the label ${label}`, () => {
      assert.ok(event)
      assert.equal(labelOf(event), label)
    })
})
