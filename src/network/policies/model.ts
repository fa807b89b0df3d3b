/**
 * Computes the nftables table of one node from the pods, namespaces and policies of the cluster. A change is
 * incremental: a changed pod is matched with groups and the policies of its namespace, a changed policy with pods.
 */
import { type Labels, matchesLabels } from '#meta/labels.ts'

import { type Element, Groups } from './groups.ts'
import { Isolation } from './isolation.ts'
import { isAlike, type PodFacts } from './pod-facts.ts'
import { type Direction, DIRECTIONS, type Policy } from './policy.ts'
import { policyChain, policyRules } from './rules.ts'
import { Table } from './table.ts'

export class PolicyModel {
  readonly table: Table = new Table()
  readonly #pods = new Map<string, PodFacts>()
  readonly #podsOf = new Map<string, Set<PodFacts>>()
  readonly #namespaces = new Map<string, Labels>()
  readonly #policies = new Map<string, Policy>()
  readonly #policiesOf = new Map<string, Set<Policy>>()
  readonly #groups = new Groups(this.table, this.#namespaces)
  readonly #isolation = new Isolation(this.table)

  /** The pod ranges of the node, as nft writes them. */
  setRanges(ranges: readonly Element[]): void {
    this.#isolation.setRanges(ranges)
  }

  setPod(key: string, pod: PodFacts | undefined): void {
    const before = this.#pods.get(key)
    if (before !== undefined && pod !== undefined && isAlike(before, pod)) return
    if (before !== undefined) this.#forget(before, pod)
    if (pod === undefined) return
    this.#pods.set(key, pod)
    indexed(this.#podsOf, pod.namespace).add(pod)
    this.#groups.join(pod)
    if (pod.isLocal) this.#isolation.lead(pod, this.#selecting(pod))
  }

  setNamespace(name: string, labels: Labels): void {
    if (JSON.stringify(this.#namespaces.get(name)) === JSON.stringify(labels)) return
    if (labels === undefined) this.#namespaces.delete(name)
    else this.#namespaces.set(name, labels)
    for (const pod of this.#podsOf.get(name) ?? []) this.#groups.join(pod)
  }

  setPolicy(key: string, policy: Policy | undefined): void {
    const before = this.#policies.get(key)
    // Groups used by both keep their pods.
    if (policy !== undefined) this.#groups.name(policy, this.#pods)
    if (before !== undefined) {
      this.#groups.unname(before)
      this.#policies.delete(key)
      removed(this.#policiesOf, before.namespace, before)
    }
    if (policy !== undefined) {
      this.#policies.set(key, policy)
      indexed(this.#policiesOf, policy.namespace).add(policy)
    }
    this.#writeChains(before, policy)
    const { namespace = '' } = policy ?? before ?? {}
    for (const pod of this.#podsOf.get(namespace) ?? [])
      if (pod.isLocal && [before, policy].some((one) => one !== undefined && matchesLabels(one.pods, pod.labels)))
        this.#isolation.lead(pod, this.#selecting(pod))
  }

  /** Called periodically: forgets deleted pods. Returns whether anything changed. */
  age(): boolean {
    return this.#isolation.age()
  }

  /** Call before reading the table: removes unused groups and chains. */
  settle(): Table {
    this.#isolation.sweep()
    this.#groups.sweep()
    return this.table
  }

  #forget(pod: PodFacts, next: PodFacts | undefined): void {
    this.#pods.delete(pod.key)
    removed(this.#podsOf, pod.namespace, pod)
    // A pod that still exists moves its memberships itself.
    if (next === undefined) this.#groups.leave(pod)
    if (pod.isLocal) this.#isolation.release(pod)
  }

  #selecting({ namespace, labels }: PodFacts): Readonly<Record<Direction, readonly string[]>> {
    const found = [...(this.#policiesOf.get(namespace) ?? [])].filter(({ pods }) => matchesLabels(pods, labels))
    const chains = (direction: Direction): readonly string[] =>
      found
        .filter(({ rules }) => rules[direction] !== undefined)
        .map(({ name }) => policyChain(direction, namespace, name))
        .sort()
    return { ingress: chains('ingress'), egress: chains('egress') }
  }

  #writeChains(before: Policy | undefined, policy: Policy | undefined): void {
    const { namespace, name } = policy ?? before ?? { namespace: '', name: '' }
    for (const direction of DIRECTIONS) {
      const chain = policyChain(direction, namespace, name)
      const rules = policy?.rules[direction]
      const comment = `${namespace}/${name}`
      if (rules === undefined) this.table.removeChain(chain)
      else this.table.setChain(chain, { rules: policyRules(rules, direction), comment })
    }
  }
}

function indexed<T>(index: Map<string, Set<T>>, key: string): Set<T> {
  let found = index.get(key)
  if (found === undefined) index.set(key, (found = new Set()))
  return found
}

function removed<T>(index: Map<string, Set<T>>, key: string, one: T): void {
  const found = index.get(key)
  found?.delete(one)
  if (found?.size === 0) index.delete(key)
}
