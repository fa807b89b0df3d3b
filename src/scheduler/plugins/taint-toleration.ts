/** TaintToleration: keeps pods off nodes whose taints they do not tolerate, and prefers nodes without soft ones. */
import { type Node, Nodes } from '#apis/core/v1.ts'
import { isRepelled, tolerates } from '#model/node-fit.ts'

import { definePlugin, type PluginFactory, spreadScores, unresolvable } from '../framework.ts'

const REPELLED = unresolvable('node(s) had untolerated taint(s)')
const HARD = ['NoSchedule', 'NoExecute']
const SOFT = 'PreferNoSchedule'

export const taintToleration: PluginFactory = definePlugin({
  name: 'TaintToleration',
  create: () => ({
    wakes: [
      {
        on: Nodes,
        actions: ['add', 'taints'],
        helps: ({ spec }, node) => !isRepelled((node as Node | undefined)?.spec.taints, spec.tolerations, HARD),
      },
      { on: 'TargetPod', actions: ['tolerations'] },
    ],
    /** Nobody who goes takes a taint along: others need not be asked to. */
    filter: ({ pod }, { node }) => (isRepelled(node?.spec.taints, pod.spec.tolerations, HARD) ? REPELLED : undefined),
    score({ pod }, { node }) {
      const { tolerations = [] } = pod.spec
      const soft = (node?.spec.taints ?? []).filter(({ effect }) => effect === SOFT)
      return soft.filter((taint) => !tolerations.some((one) => tolerates(one, taint))).length
    },
    normalize: (scores) => spreadScores(scores, true),
  }),
})
