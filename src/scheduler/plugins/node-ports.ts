/** NodePorts: ports of the node that the pod wants must be free. */
import { Nodes, type Pod } from '#apis/core/v1.ts'

import { definePlugin, type PluginFactory, unschedulable } from '../framework.ts'
import { PodInfo } from '../pod-info.ts'

const TAKEN = unschedulable("node(s) didn't have free ports for the requested pod ports")

export const nodePorts: PluginFactory = definePlugin({
  name: 'NodePorts',
  create: () => ({
    wakes: [
      {
        on: 'AssignedPod',
        actions: ['delete'],
        helps: (_, __, gone) => gone === undefined || new PodInfo(gone as Pod).ports.length > 0,
      },
      { on: Nodes, actions: ['add'] },
    ],
    filter: (pod, node) => (pod.ports.length > 0 && node.hasPortConflict(pod.ports) ? TAKEN : undefined),
  }),
})
