/** NodeAffinity: nodes that the pod's selector and affinity ask for, and those it would rather have. */
import { type Node, type NodeAffinity, type NodeSelectorTerm, Nodes } from '#apis/core/v1.ts'
import { fitsAffinity, fitsNodeTerm } from '#model/node-fit.ts'

import { type Case, definePlugin, type PluginFactory, type Refusal, spreadScores, unresolvable } from '../framework.ts'
import type { PodInfo } from '../pod-info.ts'

const UNMATCHED = unresolvable("node(s) didn't match Pod's node affinity/selector")
const NOT_ENFORCED = unresolvable("node(s) didn't match scheduler-enforced node affinity")
const CONFLICT = unresolvable('pod affinity terms conflict')

interface NodeAffinityArgs {
  /** Of all pods of the profile, besides their own. */
  readonly addedAffinity?: NodeAffinity
}

export const nodeAffinity: PluginFactory = definePlugin({
  name: 'NodeAffinity',
  create(_, { addedAffinity }: NodeAffinityArgs) {
    const required = addedAffinity?.requiredDuringSchedulingIgnoredDuringExecution?.nodeSelectorTerms ?? undefined
    const preferred = addedAffinity?.preferredDuringSchedulingIgnoredDuringExecution ?? []
    return {
      wakes: [
        {
          on: Nodes,
          actions: ['add', 'labels'],
          helps: ({ spec }, node) => node === undefined || fitsAffinity(spec, node as Node),
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

/** Where every way to fit names its nodes, no others need be looked at. */
function namedNodes({ pod }: PodInfo): Case | Refusal | undefined {
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
