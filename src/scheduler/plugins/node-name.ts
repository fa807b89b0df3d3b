/** NodeName: rejects all nodes except the one in the pod's `spec.nodeName`. */
import { Nodes } from '#apis/core/v1.ts'

import { definePlugin, type PluginFactory, unresolvable } from '../framework/framework.ts'

const ANOTHER = unresolvable("node(s) didn't match the requested node name")

export const nodeName: PluginFactory = definePlugin({
  name: 'NodeName',
  create: () => ({
    eventsToRegister: [{ resource: Nodes, actions: ['add'] }],
    filter: ({ pod }, { name }) =>
      (pod.spec.nodeName ?? name) === name || pod.spec.nodeName === '' ? undefined : ANOTHER,
  }),
})
