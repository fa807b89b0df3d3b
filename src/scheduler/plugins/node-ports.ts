/** NodePorts: rejects nodes on which a host port of the pod is in use. */
import { Nodes, type Pod } from '#apis/core/v1.ts'

import { PodInfo } from '../cluster/pod-info.ts'
import { definePlugin, type PluginFactory, unschedulable } from '../framework/framework.ts'

const TAKEN = unschedulable("node(s) didn't have free ports for the requested pod ports")

export const nodePorts: PluginFactory = definePlugin({
  name: 'NodePorts',
  create: () => ({
    eventsToRegister: [
      {
        resource: 'AssignedPod',
        actions: ['delete'],
        queueingHint: (_, __, gone) => gone === undefined || new PodInfo(gone as Pod).ports.length > 0,
      },
      { resource: Nodes, actions: ['add'] },
    ],
    filter: (pod, node) => (pod.ports.length > 0 && node.hasPortConflict(pod.ports) ? TAKEN : undefined),
  }),
})
