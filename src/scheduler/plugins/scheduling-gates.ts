/** SchedulingGates: keeps a pod out of the active queue until its last scheduling gate is removed. */
import { definePlugin, type PluginFactory, unresolvable } from '../framework/framework.ts'

export const schedulingGates: PluginFactory = definePlugin({
  name: 'SchedulingGates',
  create: () => ({
    eventsToRegister: [{ resource: 'TargetPod', actions: ['gates'] }],
    preEnqueue({ pod }) {
      const gates = pod.spec.schedulingGates ?? []
      if (gates.length === 0) return undefined
      return unresolvable(`waiting for scheduling gates: [${gates.map(({ name }) => name).join(' ')}]`)
    },
  }),
})
