/** NodeUnschedulable: keeps pods off nodes that are cordoned, unless they tolerate that. */
import { Nodes } from '#apis/core/v1.ts'
import { tolerates } from '#model/node-fit.ts'

import { definePlugin, type PluginFactory, unresolvable } from '../framework.ts'

const CORDON = { key: 'node.kubernetes.io/unschedulable', effect: 'NoSchedule' }
const CORDONED = unresolvable('node(s) were unschedulable')

export const nodeUnschedulable: PluginFactory = definePlugin({
  name: 'NodeUnschedulable',
  create: () => ({
    wakes: [
      { on: Nodes, actions: ['add', 'taints'] },
      { on: 'TargetPod', actions: ['tolerations'] },
    ],
    filter({ pod }, { node }) {
      if (node?.spec.unschedulable !== true) return undefined
      return pod.spec.tolerations?.some((one) => tolerates(one, CORDON)) === true ? undefined : CORDONED
    },
  }),
})
