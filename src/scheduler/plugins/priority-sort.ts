/** PrioritySort: the more important first, then who has waited longer. */
import { definePlugin, type PluginFactory } from '../framework.ts'

export const prioritySort: PluginFactory = definePlugin({
  name: 'PrioritySort',
  create: () => ({
    compare: (a, b) => b.pod.priority - a.pod.priority || a.queuedMs - b.queuedMs,
  }),
})
