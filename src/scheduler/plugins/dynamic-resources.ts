/** DynamicResources: devices that pods claim. So far only what is said of pods that claim none. */
import { definePlugin, type PluginFactory } from '../framework.ts'

export const dynamicResources: PluginFactory = definePlugin({
  name: 'DynamicResources',
  create: () => ({
    postFilter({ refused, pod }) {
      // Who was refused before this plugin was asked is unknown to it.
      if (refused !== undefined && refused.plugin !== 'DynamicResources')
        return { reasons: ['not found'], isBroken: true }
      const hasClaims = (pod.pod.spec.resourceClaims ?? []).length > 0
      return { reasons: [hasClaims ? 'still not schedulable' : 'no new claims to deallocate'] }
    },
  }),
})
