/** PrioritySort: orders the queue by priority, then by time in the queue. */
import { definePlugin, type PluginFactory } from '../framework/framework.ts'

export const prioritySort: PluginFactory = definePlugin({
  name: 'PrioritySort',
  create: () => ({
    compare: (a, b) => b.pod.priority - a.pod.priority || a.queuedMs - b.queuedMs,
  }),
})
