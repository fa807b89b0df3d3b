/**
 * TaintToleration: rejects nodes with taints that the pod does not tolerate, and prefers nodes without PreferNoSchedule
 * taints.
 */
import { type Node, Nodes, type Pod } from '#apis/core/v1.ts'
import { isRepelled, tolerationRule } from '#model/nodes/fit.ts'

import { definePlugin, type PluginFactory, spreadScores, unresolvable } from '../framework/framework.ts'

const REPELLED = unresolvable('node(s) had untolerated taint(s)')
const HARD = ['NoSchedule', 'NoExecute']
const SOFT = 'PreferNoSchedule'

export const taintToleration: PluginFactory = definePlugin({
  name: 'TaintToleration',
  create({ isEnabled }) {
    const isTolerated = tolerationRule(isEnabled)
    const repels = ({ spec }: Pod, node: Node | undefined): boolean =>
      isRepelled(node?.spec.taints, spec.tolerations, HARD, isTolerated)
    return {
      eventsToRegister: [
        {
          resource: Nodes,
          actions: ['add', 'taints'],
          queueingHint: (pod, node) => !repels(pod, node as Node | undefined),
        },
        { resource: 'TargetPod', actions: ['tolerations'] },
      ],
      /** Unresolvable: preemption removes no taint. */
      filter: ({ pod }, { node }) => (repels(pod, node) ? REPELLED : undefined),
      score({ pod }, { node }) {
        const { tolerations = [] } = pod.spec
        const soft = (node?.spec.taints ?? []).filter(({ effect }) => effect === SOFT)
        return soft.filter((taint) => !tolerations.some((one) => isTolerated(one, taint))).length
      },
      normalize: (scores) => spreadScores(scores, true),
    }
  },
})
