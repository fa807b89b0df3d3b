/** NodeUnschedulable: rejects cordoned nodes unless the pod tolerates that. */
import { Nodes } from '#apis/core/v1.ts'
import { tolerates } from '#model/nodes/fit.ts'

import { definePlugin, type PluginFactory, unresolvable } from '../framework/framework.ts'

const CORDON = { key: 'node.kubernetes.io/unschedulable', effect: 'NoSchedule' }
const CORDONED = unresolvable('node(s) were unschedulable')

export const nodeUnschedulable: PluginFactory = definePlugin({
  name: 'NodeUnschedulable',
  create: () => ({
    eventsToRegister: [
      { resource: Nodes, actions: ['add', 'taints'] },
      { resource: 'TargetPod', actions: ['tolerations'] },
    ],
    filter({ pod }, { node }) {
      if (node?.spec.unschedulable !== true) return undefined
      return pod.spec.tolerations?.some((one) => tolerates(one, CORDON)) === true ? undefined : CORDONED
    },
  }),
})
