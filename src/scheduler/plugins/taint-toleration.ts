/** TaintToleration: keeps pods off nodes whose taints they do not tolerate, and prefers nodes without soft ones. */
import { type Node, Nodes, type Pod } from '#apis/core/v1.ts'
import { isRepelled, tolerationRule } from '#model/node-fit.ts'

import { definePlugin, type PluginFactory, spreadScores, unresolvable } from '../framework.ts'

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
      wakes: [
        { on: Nodes, actions: ['add', 'taints'], helps: (pod, node) => !repels(pod, node as Node | undefined) },
        { on: 'TargetPod', actions: ['tolerations'] },
      ],
      /** Nobody who goes takes a taint along: others need not be asked to. */
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
