/** SchedulingGates: a pod with gates is not thought of until the last of them is taken away. */
import { definePlugin, type PluginFactory, unresolvable } from '../framework.ts'

export const schedulingGates: PluginFactory = definePlugin({
  name: 'SchedulingGates',
  create: () => ({
    wakes: [{ on: 'TargetPod', actions: ['gates'] }],
    preEnqueue({ pod }) {
      const gates = pod.spec.schedulingGates ?? []
      if (gates.length === 0) return undefined
      return unresolvable(`waiting for scheduling gates: [${gates.map(({ name }) => name).join(' ')}]`)
    },
  }),
})
