/** NodeResourcesBalancedAllocation: prefers nodes with balanced use of CPU and memory. */
import { amountOf } from '../cluster/amounts.ts'
import { definePlugin, type PluginFactory } from '../framework/framework.ts'
import { allocationOf, balanceScore, type ResourceWeight } from '../framework/resource-scores.ts'

export interface BalancedAllocationArgs {
  readonly resources?: readonly ResourceWeight[]
}

const DEFAULT: readonly ResourceWeight[] = [
  { name: 'cpu', weight: 1 },
  { name: 'memory', weight: 1 },
]

export const balancedAllocation: PluginFactory = definePlugin({
  name: 'NodeResourcesBalancedAllocation',
  create: (_, { resources = DEFAULT }: BalancedAllocationArgs) => ({
    score(pod, node) {
      // A pod without requests scores the same on every node.
      if (resources.every(({ name }) => amountOf(pod.requests, name) === 0)) return 0
      return balanceScore(allocationOf(resources, pod, node, 'requests'))
    },
  }),
})
