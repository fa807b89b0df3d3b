/**
 * Node lifecycle: detects unresponsive nodes, and updates their conditions, pods and taints. NoSchedule taints are set
 * at once, NoExecute taints zone by zone at a limited rate (`zones.ts`).
 */
import { Leases } from '#apis/coordination/v1.ts'
import { type Node, Nodes, type Pod, Pods } from '#apis/core/v1.ts'
import { objectKey } from '#meta/object.ts'
import { EVENTS, itself, rule } from '#reconcile/controller.ts'
import { runPeriodically } from '#reconcile/periodic.ts'

import { perRun } from '../../controller.ts'
import { type Controller, type ControllerContext, defineController } from '../../controller.ts'
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

  /** The key is a node name, or a pod that was assigned to a node. */
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
    runPeriodically(context, context.settings['node-monitor-period'], 'Error monitoring node health', () =>
      monitorOf(context).check(),
    ),
})

function nodeOf(pod: object): string {
  return (pod as Pod).spec.nodeName ?? ''
}

function podKeys(pod: object): string[] {
  return nodeOf(pod) === '' ? [] : [objectKey(pod as Pod)]
}

/** Deprecated topology labels, kept equal to the current ones. */
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
