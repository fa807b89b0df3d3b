/**
 * InterPodAffinity: near which pods a pod must, must not, would like to and would rather not be; and what those that are
 * there say about it. Counts and wishes are kept by the cluster, so nobody looks at every pod.
 */
import { Nodes, type Pod } from '#apis/core/v1.ts'
import type { Labels } from '#meta/labels.ts'

import type { Cluster } from '../cluster.ts'
import {
  type Case,
  definePlugin,
  type Handle,
  MAX_SCORE,
  type PluginFactory,
  type Scorer,
  unresolvable,
  unschedulable,
  type Verdict,
} from '../framework.ts'
import { bump, type NodeInfo } from '../node-info.ts'
import type { Description } from '../pod-counts.ts'
import { PodInfo } from '../pod-info.ts'
import { isMeant, type PodTerm } from '../pod-terms.ts'
import type { WishSort } from '../pod-wishes.ts'

const FAR = unresolvable("node(s) didn't match pod affinity rules")
const NEAR = unschedulable("node(s) didn't match pod anti-affinity rules")
const UNWANTED = unschedulable("node(s) didn't satisfy existing pods anti-affinity rules")

interface InterPodAffinityArgs {
  readonly hardPodAffinityWeight?: number
  readonly ignorePreferredTermsOfExistingPods?: boolean
}

/** Those who do not want the pod for one and the same reason: where they are, by value of a label, and what would be different. */
interface Unwanted {
  readonly key: string
  readonly counts: ReadonlyMap<string, number>
  readonly changes: Map<string, number>
}

/** What counts for or against, by value of a label. */
interface Liking {
  readonly key: string
  readonly counts: ReadonlyMap<string, number>
  readonly factor: number
}

export const interPodAffinity: PluginFactory = definePlugin({
  name: 'InterPodAffinity',
  create({ cluster }: Handle, args: InterPodAffinityArgs) {
    const { hardPodAffinityWeight = 1, ignorePreferredTermsOfExistingPods = false } = args
    return {
      wakes: [
        {
          on: 'AssignedPod',
          actions: ['add', 'labels', 'delete'],
          helps: (pod, now, old) => concerns(cluster, new PodInfo(pod), [now, old]),
        },
        { on: Nodes, actions: ['add', 'labels'] },
      ],
      preFilter: (pod) => Company.of(pod, cluster),
      preScore(pod) {
        const isPicky = pod.terms.preferred.length + pod.terms.avoided.length > 0
        if (ignorePreferredTermsOfExistingPods && !isPicky) return undefined
        return scorerOf(likingOf(pod, cluster, hardPodAffinityWeight))
      },
    }
  },
})

/** Whether a pod that came, went or was relabelled has to do with what this one asks, or asks something of it. */
function concerns(cluster: Cluster, pod: PodInfo, others: readonly unknown[]): boolean {
  const labelsOf = (name: string): Labels => cluster.namespaceLabels(name)
  return others.some((object) => {
    if (object === undefined) return false
    const other = new PodInfo(object as Pod)
    const terms = [...pod.terms.affinity, ...pod.terms.antiAffinity]
    if (terms.some((term) => isMeant(term, other, labelsOf))) return true
    return other.terms.antiAffinity.some((term) => isMeant(term, pod, labelsOf))
  })
}

/** Which pods a term means, to have them counted. */
function descriptionOf(term: PodTerm, cluster: Cluster): Description {
  const labelsOf = (name: string): Labels => cluster.namespaceLabels(name)
  const byNamespaceLabels = term.namespaceSelector.nothing !== true
  return {
    id: `term\n${term.id}`,
    byNamespaceLabels,
    ...(byNamespaceLabels ? {} : { namespaces: term.namespaces }),
    matches: (pod) => isMeant(term, pod, labelsOf),
  }
}

/** The rules about one pod. */
class Company implements Case {
  readonly #pod: PodInfo
  readonly #cluster: Cluster
  /** Where pods are that the pod must be near, or must not; where those are that do not want it. */
  readonly #wanted: readonly ReadonlyMap<string, number>[]
  readonly #shunned: readonly ReadonlyMap<string, number>[]
  /** By the term that says so. */
  readonly #unwanted: Map<string, Unwanted>
  /** What would be different; of forks. */
  readonly #changes: readonly Map<string, number>[]

  /** Undefined: there are none. */
  static of(pod: PodInfo, cluster: Cluster): Company | undefined {
    const { affinity, antiAffinity } = pod.terms
    const unwanted = new Map<string, Unwanted>()
    for (const { term, byValue } of cluster.wishes.of('antiAffinity')) {
      if (!isMeant(term, pod, (name) => cluster.namespaceLabels(name))) continue
      unwanted.set(term.id, { key: term.topologyKey, counts: byValue, changes: new Map() })
    }
    if (affinity.length + antiAffinity.length + unwanted.size === 0) return undefined
    return new Company(pod, cluster, unwanted)
  }

  private constructor(pod: PodInfo, cluster: Cluster, unwanted: Map<string, Unwanted>, from?: Company) {
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

  /** Only those count that all the terms mean. */
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

  fork(): Company {
    const copied = Array.from(this.#unwanted, ([id, one]) => [id, { ...one, changes: new Map(one.changes) }] as const)
    return new Company(this.#pod, this.#cluster, new Map(copied), this)
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
    // The first of its kind: when nobody is there yet whom it wants to be near, and it would be one of them.
    return !isMissing || this.#isFirst()
  }

  #isFirst(): boolean {
    const { affinity } = this.#pod.terms
    const labelsOf = (name: string): Labels => this.#cluster.namespaceLabels(name)
    if (!affinity.every((term) => isMeant(term, this.#pod, labelsOf))) return false
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

  /** Affinity first, then anti-affinity. */
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
    if (affinity.every((term) => isMeant(term, other, labelsOf)))
      for (const [at, term] of affinity.entries()) note(at, term)
    for (const [at, term] of antiAffinity.entries()) {
      if (isMeant(term, other, labelsOf)) note(affinity.length + at, term)
    }
    for (const term of other.terms.antiAffinity) {
      const value = labels?.[term.topologyKey]
      if (value !== undefined && isMeant(term, this.#pod, labelsOf)) bump(this.#changesOf(term), value, by)
    }
  }

  #changesOf({ id, topologyKey: key }: PodTerm): Map<string, number> {
    let unwanted = this.#unwanted.get(id)
    if (unwanted === undefined) this.#unwanted.set(id, (unwanted = { key, counts: new Map(), changes: new Map() }))
    return unwanted.changes
  }
}

/** For and against: what the pod would like, and what those that are there would like of it. */
function likingOf(pod: PodInfo, cluster: Cluster, hardWeight: number): Liking[] {
  const liking: Liking[] = []
  const add = ({ topologyKey: key }: PodTerm, counts: ReadonlyMap<string, number>, factor: number): void => {
    if (counts.size > 0) liking.push({ key, counts, factor })
  }
  for (const [terms, sign] of [[pod.terms.preferred, 1] as const, [pod.terms.avoided, -1] as const]) {
    for (const { term, weight } of terms) {
      add(term, cluster.counts.of(descriptionOf(term, cluster)).by(term.topologyKey), sign * weight)
    }
  }
  const others: readonly (readonly [WishSort, number])[] = [
    ['affinity', hardWeight],
    ['preferred', 1],
    ['avoided', -1],
  ]
  for (const [sort, factor] of others) {
    if (factor === 0) continue
    for (const { term, byValue } of cluster.wishes.of(sort)) {
      if (isMeant(term, pod, (name) => cluster.namespaceLabels(name))) add(term, byValue, factor)
    }
  }
  return liking
}

function scorerOf(liking: readonly Liking[]): Scorer | undefined {
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
