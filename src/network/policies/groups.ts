/**
 * Groups of pods as nftables sets: peers by selector, and ports by name. All policies that use a group share it, and it
 * is removed with the last of them.
 */
import { type Labels, matchesLabels } from '#meta/labels.ts'

import { FAMILIES, type Family, type PodFacts } from './pod-facts.ts'
import { DIRECTIONS, type NamedPort, type PodPeer, type Policy } from './policy.ts'
import { namedSet, peerSet } from './rules.ts'
import type { SetType, Table } from './table.ts'

export interface Element {
  readonly family: Family
  readonly text: string
}

interface Group extends GroupPlan {
  /** The number of policies that use it. */
  users: number
  /** Reference counts, because two pods may briefly share an address. */
  readonly counts: Map<string, number>
}

interface GroupPlan {
  readonly key: string
  readonly type: SetType
  readonly setOf: (family: Family) => string
  /** The elements of a pod; empty if it does not belong. */
  readonly elementsOf: (pod: PodFacts) => readonly Element[]
}

export class Groups {
  readonly #table: Table
  readonly #namespaces: ReadonlyMap<string, Labels>
  readonly #groups = new Map<string, Group>()
  /** The elements that each pod added, for removal. */
  readonly #memberships = new Map<string, Map<Group, readonly Element[]>>()

  /** `namespaces` is read whenever a pod joins. */
  constructor(table: Table, namespaces: ReadonlyMap<string, Labels>) {
    this.#table = table
    this.#namespaces = namespaces
  }

  /** `pods` are all pods, to fill new groups. */
  name(policy: Policy, pods: ReadonlyMap<string, PodFacts>): void {
    for (const plan of this.#plansOf(policy)) {
      const group = this.#groups.get(plan.key) ?? this.#found(plan, pods)
      group.users++
    }
  }

  unname(policy: Policy): void {
    for (const { key } of this.#plansOf(policy)) {
      const group = this.#groups.get(key)
      if (group !== undefined) group.users--
    }
  }

  /** Updates the memberships of a pod. */
  join(pod: PodFacts): void {
    for (const group of this.#groups.values()) this.#place(pod, group, group.elementsOf(pod))
  }

  leave(pod: PodFacts): void {
    for (const group of this.#memberships.get(pod.key)?.keys() ?? []) this.#place(pod, group, [])
    this.#memberships.delete(pod.key)
  }

  /** Removes unused groups. */
  sweep(): void {
    for (const [key, group] of this.#groups) {
      if (group.users > 0) continue
      this.#groups.delete(key)
      for (const memberships of this.#memberships.values()) memberships.delete(group)
      for (const family of FAMILIES) this.#table.removeSet(group.setOf(family))
    }
  }

  #found(plan: GroupPlan, pods: ReadonlyMap<string, PodFacts>): Group {
    const group = { ...plan, users: 0, counts: new Map<string, number>() }
    this.#groups.set(plan.key, group)
    for (const family of FAMILIES) this.#table.addSet(plan.setOf(family), family, plan.type)
    for (const pod of pods.values()) this.#place(pod, group, group.elementsOf(pod))
    return group
  }

  #place(pod: PodFacts, group: Group, elements: readonly Element[]): void {
    const before = this.#memberships.get(pod.key)?.get(group) ?? []
    if (before.length === 0 && elements.length === 0) return
    // Adds first, so that unchanged elements are not touched.
    for (const element of elements) this.#count(group, element, 1)
    for (const element of before) this.#count(group, element, -1)
    let memberships = this.#memberships.get(pod.key)
    if (memberships === undefined) this.#memberships.set(pod.key, (memberships = new Map()))
    if (elements.length === 0) memberships.delete(group)
    else memberships.set(group, elements)
  }

  #count({ counts, setOf }: Group, { family, text }: Element, by: 1 | -1): void {
    const now = (counts.get(text) ?? 0) + by
    if (now === 0) {
      counts.delete(text)
      this.#table.removeElement(setOf(family), text)
    } else {
      counts.set(text, now)
      this.#table.addElement(setOf(family), text)
    }
  }

  /** Without duplicates. */
  #plansOf({ rules }: Policy): Iterable<GroupPlan> {
    const all = DIRECTIONS.flatMap((direction) => rules[direction] ?? [])
    const plans = [
      ...all.flatMap(({ peers = [] }) => peers.filter((peer) => peer.kind === 'pods')).map((peer) => this.#peers(peer)),
      ...all.flatMap(({ ports }) => ports?.names ?? []).map(named),
    ]
    return new Map(plans.map((plan) => [plan.key, plan])).values()
  }

  #peers({ key, namespace: only, namespaces, pods }: PodPeer): GroupPlan {
    const isIn = ({ namespace }: PodFacts): boolean => {
      if (only !== undefined) return namespace === only
      const labels = this.#namespaces.get(namespace)
      return labels !== undefined && matchesLabels(namespaces, labels)
    }
    return {
      key: `peers ${key}`,
      type: 'address',
      setOf: (family) => peerSet(key, family),
      elementsOf: (pod) => (isIn(pod) && matchesLabels(pods, pod.labels) ? pod.addresses : []),
    }
  }
}

function named(port: NamedPort): GroupPlan {
  const { protocol, name } = port
  return {
    key: `named ${protocol} ${name}`,
    type: 'named',
    setOf: (family) => namedSet(port, family),
    elementsOf: ({ addresses, ports }) =>
      ports
        .filter((one) => one.name === name && one.protocol === protocol)
        .flatMap(({ number }) =>
          addresses.map(({ family, text }) => ({ family, text: `${text} . ${protocol} . ${number}` })),
        ),
  }
}
