/** DynamicResources: devices that pods claim. None are given out so far: a pod that claims some waits, and is told why. */
import { definePlugin, type PluginFactory, unresolvable } from '../framework.ts'

const NOT_BUILT = unresolvable('hyperkube does not allocate devices yet')

export const dynamicResources: PluginFactory = definePlugin({
  name: 'DynamicResources',
  create: () => ({
    wakes: [],
    preFilter: ({ pod }) => ((pod.spec.resourceClaims ?? []).length > 0 ? NOT_BUILT : undefined),
    postFilter({ refused, pod }) {
      // Who was refused before this plugin was asked is unknown to it.
      if (refused !== undefined && refused.plugin !== 'DynamicResources')
        return { reasons: ['not found'], isBroken: true }
      const hasClaims = (pod.pod.spec.resourceClaims ?? []).length > 0
      return { reasons: [hasClaims ? 'still not schedulable' : 'no new claims to deallocate'] }
    },
  }),
})
