/**
 * How many pods of some description are on each node, and in each zone, rack or whatever nodes have in common. A count
 * is made when somebody first asks for it, and kept as pods come and go: pods made from one template ask for the same.
 */
import type { Labels } from '#meta/labels.ts'

import { bump, type NodeInfo } from './node-info.ts'
import type { PodInfo } from './pod-info.ts'

/** Which pods count. */
export interface Description {
  /** The same for all that mean the same. */
  readonly id: string
  /** The only namespaces they can be in. Undefined: any. */
  readonly namespaces?: ReadonlySet<string>
  /** It says so by the labels of namespaces, and is void when those change. */
  readonly byNamespaceLabels?: boolean
  matches(pod: PodInfo): boolean
}

export class PodCount {
  readonly description: Description
  /** By node, without those that have none. */
  readonly onNode: Map<string, number> = new Map()
  /** By topology key, by value of that label. Made when first asked for. */
  readonly #byLabel = new Map<string, Map<string, number>>()
  readonly #labelsOf: (node: string) => Labels

  constructor(description: Description, labelsOf: (node: string) => Labels) {
    this.description = description
    this.#labelsOf = labelsOf
  }

  /** How many there are on all nodes with the same value of the label, for each value. */
  by(topologyKey: string): ReadonlyMap<string, number> {
    const known = this.#byLabel.get(topologyKey)
    if (known !== undefined) return known
    const counts = new Map<string, number>()
    for (const [node, count] of this.onNode) {
      const value = this.#labelsOf(node)?.[topologyKey]
      if (value !== undefined) bump(counts, value, count)
    }
    this.#byLabel.set(topologyKey, counts)
    return counts
  }

  count(node: NodeInfo, by: number): void {
    bump(this.onNode, node.name, by)
    this.#spread(node.labels, by)
  }

  /** The node's labels have changed. */
  moved(node: string, from: Labels, to: Labels): void {
    const count = this.onNode.get(node)
    if (count === undefined) return
    this.#spread(from, -count)
    this.#spread(to, count)
  }

  #spread(labels: Labels, by: number): void {
    for (const [key, counts] of this.#byLabel) {
      const value = labels?.[key]
      if (value !== undefined) bump(counts, value, by)
    }
  }
}

/** More than this many are not kept: those nobody asked for the longest go first. */
const KEPT = 1000

export class PodCounts {
  readonly #nodes: ReadonlyMap<string, NodeInfo>
  /** In order of when they were last asked for. */
  readonly #counts = new Map<string, PodCount>()
  /** Those that can only be about pods of one namespace, by it. */
  readonly #inNamespace = new Map<string, Set<PodCount>>()
  readonly #anywhere = new Set<PodCount>()

  constructor(nodes: ReadonlyMap<string, NodeInfo>) {
    this.#nodes = nodes
  }

  of(description: Description): PodCount {
    const known = this.#counts.get(description.id)
    if (known !== undefined) {
      this.#counts.delete(description.id)
      this.#counts.set(description.id, known)
      return known
    }
    const made = new PodCount(description, (node) => this.#nodes.get(node)?.labels)
    for (const node of this.#nodes.values()) {
      let matching = 0
      for (const pod of node.pods.values()) if (description.matches(pod)) matching++
      if (matching > 0) made.onNode.set(node.name, matching)
    }
    this.#keep(made)
    return made
  }

  placed(pod: PodInfo, node: NodeInfo, by: 1 | -1): void {
    for (const group of [this.#anywhere, this.#inNamespace.get(pod.namespace)]) {
      for (const count of group ?? []) if (count.description.matches(pod)) count.count(node, by)
    }
  }

  moved(node: string, from: Labels, to: Labels): void {
    for (const count of this.#counts.values()) count.moved(node, from, to)
  }

  namespacesChanged(): void {
    for (const count of this.#counts.values()) if (count.description.byNamespaceLabels === true) this.#drop(count)
  }

  #keep(count: PodCount): void {
    this.#counts.set(count.description.id, count)
    for (const group of this.#groupsOf(count)) group.add(count)
    if (this.#counts.size <= KEPT) return
    const [oldest] = this.#counts.values()
    if (oldest !== undefined) this.#drop(oldest)
  }

  #drop(count: PodCount): void {
    this.#counts.delete(count.description.id)
    for (const group of this.#groupsOf(count)) group.delete(count)
  }

  #groupsOf({ description: { namespaces } }: PodCount): Set<PodCount>[] {
    if (namespaces === undefined) return [this.#anywhere]
    return Array.from(namespaces, (name) => {
      let group = this.#inNamespace.get(name)
      if (group === undefined) this.#inNamespace.set(name, (group = new Set()))
      return group
    })
  }
}
