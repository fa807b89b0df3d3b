/** NodeName: a pod that names its node goes there or nowhere. */
import { Nodes } from '#apis/core/v1.ts'

import { definePlugin, type PluginFactory, unresolvable } from '../framework.ts'

const ANOTHER = unresolvable("node(s) didn't match the requested node name")

export const nodeName: PluginFactory = definePlugin({
  name: 'NodeName',
  create: () => ({
    wakes: [{ on: Nodes, actions: ['add'] }],
    filter: ({ pod }, { name }) =>
      (pod.spec.nodeName ?? name) === name || pod.spec.nodeName === '' ? undefined : ANOTHER,
  }),
})
