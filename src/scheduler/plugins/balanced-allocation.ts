/** NodeResourcesBalancedAllocation: nodes on which CPU and memory are used up evenly are better. */
import { amountOf } from '../amounts.ts'
import { definePlugin, type PluginFactory } from '../framework.ts'
import { allocationOf, balanceScore, type ResourceWeight } from '../resource-scores.ts'

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
      // A pod that asks for nothing changes no balance; it is the same for all nodes.
      if (resources.every(({ name }) => amountOf(pod.requests, name) === 0)) return 0
      return balanceScore(allocationOf(resources, pod, node, 'requests'))
    },
  }),
})
