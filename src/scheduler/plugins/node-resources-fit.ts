/** NodeResourcesFit: what the pod asks for must be left on the node; by default the emptiest node is best. */
import { Nodes } from '#apis/core/v1.ts'

import { amountOf, type Amounts } from '../amounts.ts'
import { definePlugin, type PluginFactory, type Refusal, type Verdict } from '../framework.ts'
import type { NodeInfo } from '../node-info.ts'
import type { PodInfo } from '../pod-info.ts'
import { allocationOf, type ResourceWeight, type Strategy, strategyScore } from '../resource-scores.ts'

export interface NodeResourcesFitArgs {
  readonly ignoredResources?: readonly string[]
  readonly ignoredResourceGroups?: readonly string[]
  readonly scoringStrategy?: Strategy
}

const DEFAULT: Strategy = {
  type: 'LeastAllocated',
  resources: [
    { name: 'cpu', weight: 1 },
    { name: 'memory', weight: 1 },
  ],
}

export const nodeResourcesFit: PluginFactory = definePlugin({
  name: 'NodeResourcesFit',
  create(_, { ignoredResources = [], ignoredResourceGroups = [], scoringStrategy = DEFAULT }: NodeResourcesFitArgs) {
    const isIgnored = (name: string): boolean =>
      ignoredResources.includes(name) ||
      (name.includes('/') && ignoredResourceGroups.includes(name.split('/', 1)[0] ?? ''))
    const resources: readonly ResourceWeight[] = scoringStrategy.resources ?? DEFAULT.resources ?? []
    return {
      wakes: [
        { on: 'AssignedPod', actions: ['delete', 'scaled-down'] },
        { on: 'TargetPod', actions: ['scaled-down'] },
        { on: Nodes, actions: ['add', 'allocatable'] },
      ],
      filter: (pod, node) => lacking(pod, node, isIgnored),
      score: (pod, node) => strategyScore(scoringStrategy, resources, allocationOf(resources, pod, node, 'likely')),
    }
  },
})

/** Everything that is too little, told at once. What the node could not give even if it were empty, nobody can. */
function lacking(pod: PodInfo, node: NodeInfo, isIgnored: (name: string) => boolean): Verdict {
  const reasons: string[] = []
  if (node.pods.size + 1 > node.maxPods) reasons.push('Too many pods')
  let isHopeless = false
  for (const name of namesIn(pod.requests)) {
    const wanted = amountOf(pod.requests, name)
    if (wanted === 0 || (name.includes('/') && isIgnored(name))) continue
    const all = amountOf(node.allocatable, name)
    if (wanted <= all - amountOf(node.requested, name)) continue
    reasons.push(`Insufficient ${name}`)
    if (wanted > all) isHopeless = true
  }
  if (reasons.length === 0) return undefined
  const refusal: Refusal = { code: isHopeless ? 'unresolvable' : 'unschedulable', reasons }
  return refusal
}

const PLAIN = ['cpu', 'memory', 'ephemeral-storage']

function namesIn({ others }: Amounts): readonly string[] {
  return others === undefined ? PLAIN : [...PLAIN, ...others.keys()]
}
