/**
 * InterPodAffinity: required and preferred (anti-)affinity of the pod, and that of existing pods towards it. The
 * cluster cache counts pods and terms incrementally, so no plugin visits every pod.
 */
import { Nodes, type Pod } from '#apis/core/v1.ts'
import type { Labels } from '#meta/labels.ts'

import type { Cluster } from '../cluster/cluster.ts'
import type { TermKind } from '../cluster/existing-affinity-terms.ts'
import { bump, type NodeInfo } from '../cluster/node-info.ts'
import type { Description } from '../cluster/pod-counts.ts'
import { PodInfo } from '../cluster/pod-info.ts'
import { matchesTerm, type PodTerm } from '../cluster/pod-terms.ts'
import {
  definePlugin,
  type Handle,
  MAX_SCORE,
  type PluginFactory,
  type PluginState,
  type Scorer,
  unresolvable,
  unschedulable,
  type Verdict,
} from '../framework/framework.ts'

const FAR = unresolvable("node(s) didn't match pod affinity rules")
const NEAR = unschedulable("node(s) didn't match pod anti-affinity rules")
const UNWANTED = unschedulable("node(s) didn't satisfy existing pods anti-affinity rules")

interface InterPodAffinityArgs {
  readonly hardPodAffinityWeight?: number
  readonly ignorePreferredTermsOfExistingPods?: boolean
}

/** Existing pods whose anti-affinity term matches the pod: their count by topology value, and simulated changes. */
interface ExistingAntiAffinity {
  readonly key: string
  readonly counts: ReadonlyMap<string, number>
  readonly changes: Map<string, number>
}

/** A preferred term's weight by topology value. */
interface PreferredWeight {
  readonly key: string
  readonly counts: ReadonlyMap<string, number>
  readonly factor: number
}

export const interPodAffinity: PluginFactory = definePlugin({
  name: 'InterPodAffinity',
  create({ cluster }: Handle, args: InterPodAffinityArgs) {
    const { hardPodAffinityWeight = 1, ignorePreferredTermsOfExistingPods = false } = args
    return {
      eventsToRegister: [
        {
          resource: 'AssignedPod',
          actions: ['add', 'labels', 'delete'],
          queueingHint: (pod, now, old) => concerns(cluster, new PodInfo(pod), [now, old]),
        },
        { resource: Nodes, actions: ['add', 'labels'] },
      ],
      preFilter: (pod) => AffinityState.of(pod, cluster),
      preScore(pod) {
        const isPicky = pod.terms.preferred.length + pod.terms.avoided.length > 0
        if (ignorePreferredTermsOfExistingPods && !isPicky) return undefined
        return scorerOf(preferredWeights(pod, cluster, hardPodAffinityWeight))
      },
    }
  },
})

/** Whether a changed pod matches a term of this pod, or the reverse. */
function concerns(cluster: Cluster, pod: PodInfo, others: readonly unknown[]): boolean {
  const labelsOf = (name: string): Labels => cluster.namespaceLabels(name)
  return others.some((object) => {
    if (object === undefined) return false
    const other = new PodInfo(object as Pod)
    const terms = [...pod.terms.affinity, ...pod.terms.antiAffinity]
    if (terms.some((term) => matchesTerm(term, other, labelsOf))) return true
    return other.terms.antiAffinity.some((term) => matchesTerm(term, pod, labelsOf))
  })
}

/** The pods that a term selects, for counting. */
function descriptionOf(term: PodTerm, cluster: Cluster): Description {
  const labelsOf = (name: string): Labels => cluster.namespaceLabels(name)
  const byNamespaceLabels = term.namespaceSelector.nothing !== true
  return {
    id: `term\n${term.id}`,
    byNamespaceLabels,
    ...(byNamespaceLabels ? {} : { namespaces: term.namespaces }),
    matches: (pod) => matchesTerm(term, pod, labelsOf),
  }
}

/** Required terms of one pod. */
class AffinityState implements PluginState {
  readonly #pod: PodInfo
  readonly #cluster: Cluster
  /** Counts of pods for required affinity and anti-affinity, and of existing anti-affinity that matches the pod. */
  readonly #wanted: readonly ReadonlyMap<string, number>[]
  readonly #shunned: readonly ReadonlyMap<string, number>[]
  /** By term. */
  readonly #unwanted: Map<string, ExistingAntiAffinity>
  /** Simulated changes; only in forks. */
  readonly #changes: readonly Map<string, number>[]

  /** Undefined: there are no required terms. */
  static of(pod: PodInfo, cluster: Cluster): AffinityState | undefined {
    const { affinity, antiAffinity } = pod.terms
    const unwanted = new Map<string, ExistingAntiAffinity>()
    for (const { term, byValue } of cluster.affinityTerms.of('antiAffinity')) {
      if (!matchesTerm(term, pod, (name) => cluster.namespaceLabels(name))) continue
      unwanted.set(term.id, { key: term.topologyKey, counts: byValue, changes: new Map() })
    }
    if (affinity.length + antiAffinity.length + unwanted.size === 0) return undefined
    return new AffinityState(pod, cluster, unwanted)
  }

  private constructor(
    pod: PodInfo,
    cluster: Cluster,
    unwanted: Map<string, ExistingAntiAffinity>,
    from?: AffinityState,
  ) {
    this.#pod = pod
    this.#cluster = cluster
    const counted = (term: PodTerm): ReadonlyMap<string, number> =>
      cluster.counts.of(descriptionOf(term, cluster)).by(term.topologyKey)
    this.#wanted = from === undefined ? this.#countAll(pod.terms.affinity) : from.#wanted
    this.#shunned = from === undefined ? pod.terms.antiAffinity.map(counted) : from.#shunned
    this.#unwanted = unwanted
    const terms = pod.terms.affinity.length + pod.terms.antiAffinity.length
    this.#changes = Array.from({ length: terms }, (_, at) => new Map(from === undefined ? [] : from.#changes[at]))
  }

  /** Counts only pods that match all the terms. */
  #countAll(terms: readonly PodTerm[]): ReadonlyMap<string, number>[] {
    if (terms.length === 0) return []
    const each = terms.map((term) => descriptionOf(term, this.#cluster))
    const [first] = each
    const all: Description =
      each.length === 1 && first !== undefined
        ? first
        : {
            id: `all\n${each.map(({ id }) => id).join('\n\n')}`,
            byNamespaceLabels: each.some(({ byNamespaceLabels }) => byNamespaceLabels),
            matches: (pod) => each.every((one) => one.matches(pod)),
          }
    const count = this.#cluster.counts.of(all)
    return terms.map(({ topologyKey }) => count.by(topologyKey))
  }

  fork(): AffinityState {
    const copied = Array.from(this.#unwanted, ([id, one]) => [id, { ...one, changes: new Map(one.changes) }] as const)
    return new AffinityState(this.#pod, this.#cluster, new Map(copied), this)
  }

  add(other: PodInfo, node: NodeInfo): void {
    this.#change(other, node, 1)
  }

  remove(other: PodInfo, node: NodeInfo): void {
    this.#change(other, node, -1)
  }

  filter(node: NodeInfo): Verdict {
    const { labels } = node
    if (this.#wanted.length > 0 && !this.#isNearAll(node)) return FAR
    if (this.#shunned.length > 0 && this.#isNearAny(labels)) return NEAR
    if (this.#unwanted.size === 0 || labels === undefined) return undefined
    for (const { key, counts, changes } of this.#unwanted.values()) {
      const value = labels[key]
      if (value !== undefined && (counts.get(value) ?? 0) + (changes.get(value) ?? 0) > 0) return UNWANTED
    }
    return undefined
  }

  #isNearAll({ labels }: NodeInfo): boolean {
    const { affinity } = this.#pod.terms
    let isMissing = false
    for (const [at, { topologyKey }] of affinity.entries()) {
      const value = labels?.[topologyKey]
      if (value === undefined) return false
      if (this.#count(at, value) <= 0) isMissing = true
    }
    // The first pod of a group may go anywhere if it matches its own terms.
    return !isMissing || this.#isFirst()
  }

  #isFirst(): boolean {
    const { affinity } = this.#pod.terms
    const labelsOf = (name: string): Labels => this.#cluster.namespaceLabels(name)
    if (!affinity.every((term) => matchesTerm(term, this.#pod, labelsOf))) return false
    return affinity.every((_, at) => {
      const values = new Set([...(this.#wanted[at]?.keys() ?? []), ...(this.#changes[at]?.keys() ?? [])])
      for (const value of values) if (this.#count(at, value) > 0) return false
      return true
    })
  }

  #isNearAny(labels: Labels): boolean {
    const { affinity, antiAffinity } = this.#pod.terms
    for (let at = 0; at < antiAffinity.length; at++) {
      const value = labels?.[(antiAffinity[at] as PodTerm).topologyKey]
      if (value !== undefined && this.#count(affinity.length + at, value) > 0) return true
    }
    return false
  }

  /** Affinity terms first, then anti-affinity. */
  #count(at: number, value: string): number {
    const wanted = this.#wanted.length
    const counts = at < wanted ? this.#wanted[at] : this.#shunned[at - wanted]
    return (counts?.get(value) ?? 0) + (this.#changes[at]?.get(value) ?? 0)
  }

  #change(other: PodInfo, { labels }: NodeInfo, by: number): void {
    const labelsOf = (name: string): Labels => this.#cluster.namespaceLabels(name)
    const { affinity, antiAffinity } = this.#pod.terms
    const note = (at: number, { topologyKey }: PodTerm): void => {
      const value = labels?.[topologyKey]
      const changes = this.#changes[at]
      if (value !== undefined && changes !== undefined) bump(changes, value, by)
    }
    if (affinity.every((term) => matchesTerm(term, other, labelsOf)))
      for (const [at, term] of affinity.entries()) note(at, term)
    for (const [at, term] of antiAffinity.entries()) {
      if (matchesTerm(term, other, labelsOf)) note(affinity.length + at, term)
    }
    for (const term of other.terms.antiAffinity) {
      const value = labels?.[term.topologyKey]
      if (value !== undefined && matchesTerm(term, this.#pod, labelsOf)) bump(this.#changesOf(term), value, by)
    }
  }

  #changesOf({ id, topologyKey: key }: PodTerm): Map<string, number> {
    let unwanted = this.#unwanted.get(id)
    if (unwanted === undefined) this.#unwanted.set(id, (unwanted = { key, counts: new Map(), changes: new Map() }))
    return unwanted.changes
  }
}

/** Preferred terms of the pod and of existing pods towards it. */
function preferredWeights(pod: PodInfo, cluster: Cluster, hardWeight: number): PreferredWeight[] {
  const liking: PreferredWeight[] = []
  const add = ({ topologyKey: key }: PodTerm, counts: ReadonlyMap<string, number>, factor: number): void => {
    if (counts.size > 0) liking.push({ key, counts, factor })
  }
  for (const [terms, sign] of [[pod.terms.preferred, 1] as const, [pod.terms.avoided, -1] as const]) {
    for (const { term, weight } of terms) {
      add(term, cluster.counts.of(descriptionOf(term, cluster)).by(term.topologyKey), sign * weight)
    }
  }
  const others: readonly (readonly [TermKind, number])[] = [
    ['affinity', hardWeight],
    ['preferred', 1],
    ['avoided', -1],
  ]
  for (const [sort, factor] of others) {
    if (factor === 0) continue
    for (const { term, byValue } of cluster.affinityTerms.of(sort)) {
      if (matchesTerm(term, pod, (name) => cluster.namespaceLabels(name))) add(term, byValue, factor)
    }
  }
  return liking
}

function scorerOf(liking: readonly PreferredWeight[]): Scorer | undefined {
  if (liking.length === 0) return undefined
  return {
    score({ labels }) {
      let sum = 0
      for (const { key, counts, factor } of liking) {
        const value = labels?.[key]
        if (value !== undefined) sum += factor * (counts.get(value) ?? 0)
      }
      return sum
    },
    normalize(scores) {
      let [least, most] = [Infinity, -Infinity]
      for (const score of scores) {
        least = Math.min(least, score)
        most = Math.max(most, score)
      }
      const range = most - least
      for (let at = 0; at < scores.length; at++) {
        scores[at] = range > 0 ? Math.trunc(MAX_SCORE * (((scores[at] as number) - least) / range)) : 0
      }
    },
  }
}
