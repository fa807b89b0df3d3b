/**
 * Node lifecycle: notices nodes that have fallen silent and says so on them, on their pods and by taints. Taints that keep
 * new pods away come at once; those that drive pods away come zone by zone, one node after the other (`zones.ts`).
 */
import { Leases } from '#apis/coordination/v1.ts'
import { type Node, Nodes, type Pod, Pods } from '#apis/core/v1.ts'
import { objectKey } from '#meta/object.ts'

import {
  type Controller,
  type ControllerContext,
  defineController,
  EVENTS,
  itself,
  perRun,
  rule,
} from '../controller.ts'
import { inRounds } from '../in-rounds.ts'
import { Monitor } from './monitor.ts'
import { markNotReady } from './pods.ts'
import { changeTaints, planNoSchedule } from './taints.ts'

const monitorOf = perRun((context) => new Monitor(context))

export const nodeLifecycleController: Controller = defineController({
  name: 'node-lifecycle-controller',
  aliases: ['nodelifecycle'],
  account: 'node-controller',
  component: 'node-controller',
  workers: 8,
  watches: [itself(Nodes), { kind: Pods, keysOf: podKeys, concerns: (pod, old) => nodeOf(pod) !== nodeOf(old) }],
  reads: [Leases],
  rules: [
    rule('', 'nodes', 'delete get list patch update watch'),
    rule('', 'nodes/status', 'patch update'),
    rule('', 'pods/status', 'patch update'),
    rule('', 'pods', 'delete get list watch'),
    EVENTS,
  ],

  /** A node by its name, or a pod that has come to a node. */
  async reconcile(key, context) {
    const pod = context.cache.get(Pods, key)
    const ready = pod && monitorOf(context).readyOf(nodeOf(pod))
    if (pod !== undefined && ready !== undefined && ready.status !== 'True') await markNotReady([pod], context)
    const node = context.cache.get(Nodes, key)
    if (node === undefined) return
    await changeTaints(node, planNoSchedule(node), context)
    await alignLabels(node, context)
  },

  run: (context) =>
    inRounds(context, context.settings['node-monitor-period'], 'Error monitoring node health', () =>
      monitorOf(context).look(),
    ),
})

function nodeOf(pod: object): string {
  return (pod as Pod).spec.nodeName ?? ''
}

function podKeys(pod: object): string[] {
  return nodeOf(pod) === '' ? [] : [objectKey(pod as Pod)]
}

/** The older names of labels say what the newer ones do. */
const LABELS: readonly (readonly [label: string, older: string])[] = [
  ['kubernetes.io/os', 'beta.kubernetes.io/os'],
  ['kubernetes.io/arch', 'beta.kubernetes.io/arch'],
]

async function alignLabels({ metadata }: Node, { client, signal }: ControllerContext): Promise<void> {
  const { name = '', labels = {} } = metadata
  const wrong = LABELS.filter(([label, older]) => labels[label] !== undefined && labels[older] !== labels[label])
  if (wrong.length === 0) return
  const right = Object.fromEntries(wrong.map(([label, older]) => [older, labels[label]]))
  await client.patch(Nodes, { name }, { type: 'strategic', value: { metadata: { labels: right } } }, { signal })
}
