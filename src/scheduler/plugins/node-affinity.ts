/**
 * NodeAffinity: filters nodes by the pod's node selector and required affinity, and scores them by its preferred
 * affinity.
 */
import { type Node, type NodeAffinity, type NodeSelectorTerm, Nodes } from '#apis/core/v1.ts'
import { fitsAffinity, fitsNodeTerm } from '#model/nodes/fit.ts'

import type { PodInfo } from '../cluster/pod-info.ts'
import {
  definePlugin,
  type PluginFactory,
  type PluginState,
  type Refusal,
  spreadScores,
  unresolvable,
} from '../framework/framework.ts'

const UNMATCHED = unresolvable("node(s) didn't match Pod's node affinity/selector")
const NOT_ENFORCED = unresolvable("node(s) didn't match scheduler-enforced node affinity")
const CONFLICT = unresolvable('pod affinity terms conflict')

interface NodeAffinityArgs {
  /** Applies to all pods of the profile, in addition to their own. */
  readonly addedAffinity?: NodeAffinity
}

export const nodeAffinity: PluginFactory = definePlugin({
  name: 'NodeAffinity',
  create(_, { addedAffinity }: NodeAffinityArgs) {
    const required = addedAffinity?.requiredDuringSchedulingIgnoredDuringExecution?.nodeSelectorTerms ?? undefined
    const preferred = addedAffinity?.preferredDuringSchedulingIgnoredDuringExecution ?? []
    return {
      eventsToRegister: [
        {
          resource: Nodes,
          actions: ['add', 'labels'],
          queueingHint: ({ spec }, node) => node === undefined || fitsAffinity(spec, node as Node),
        },
      ],
      preFilter: namedNodes,
      filter({ pod }, { node }) {
        if (node === undefined) return UNMATCHED
        if (required !== undefined && !required.some((term) => fitsNodeTerm(term, node))) return NOT_ENFORCED
        return fitsAffinity(pod.spec, node) ? undefined : UNMATCHED
      },
      score({ pod }, { node }) {
        const own = pod.spec.affinity?.nodeAffinity?.preferredDuringSchedulingIgnoredDuringExecution ?? []
        let sum = 0
        for (const { weight, preference } of [...preferred, ...own]) {
          if (node !== undefined && fitsNodeTerm(preference, node)) sum += weight
        }
        return sum
      },
      normalize: (scores) => spreadScores(scores),
    }
  },
})

/** If every term names its nodes, only those are searched. */
function namedNodes({ pod }: PodInfo): PluginState | Refusal | undefined {
  const terms = pod.spec.affinity?.nodeAffinity?.requiredDuringSchedulingIgnoredDuringExecution?.nodeSelectorTerms ?? []
  const names = new Set<string>()
  for (const term of terms) {
    const named = namesOf(term)
    if (named === undefined) return undefined
    for (const name of named) names.add(name)
  }
  if (terms.length === 0) return undefined
  return names.size === 0 ? CONFLICT : { nodes: names }
}

/** Undefined: it names none. */
function namesOf({ matchFields = [] }: NodeSelectorTerm): ReadonlySet<string> | undefined {
  let names: ReadonlySet<string> | undefined
  for (const { key, operator, values = [] } of matchFields) {
    if (key !== 'metadata.name' || operator !== 'In') continue
    const own = new Set(values)
    names = names?.intersection(own) ?? own
  }
  return names
}
