/**
 * Counts matching pods by node and by topology value. Counts are created on first use, then updated incrementally. Pods
 * of one template share a count.
 */
import type { Labels } from '#meta/labels.ts'

import { bump, type NodeInfo } from './node-info.ts'
import type { PodInfo } from './pod-info.ts'

/** Selects pods. */
export interface Description {
  /** Equal for equal selections. */
  readonly id: string
  /** The only namespaces to match. Undefined: all. */
  readonly namespaces?: ReadonlySet<string>
  /** Uses namespace labels, so a change of those invalidates it. */
  readonly byNamespaceLabels?: boolean
  matches(pod: PodInfo): boolean
}

export class PodCount {
  readonly description: Description
  /** By node; nodes without matching pods are absent. */
  readonly onNode: Map<string, number> = new Map()
  /** By topology key, then by label value. Created on first use. */
  readonly #byLabel = new Map<string, Map<string, number>>()
  readonly #labelsOf: (node: string) => Labels

  constructor(description: Description, labelsOf: (node: string) => Labels) {
    this.description = description
    this.#labelsOf = labelsOf
  }

  /** The number of pods for each value of the label. */
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

  /** The labels of the node changed. */
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

/** The maximum number of counts; the least recently used one is dropped first. */
const KEPT = 1000

export class PodCounts {
  readonly #nodes: ReadonlyMap<string, NodeInfo>
  /** In least-recently-used order. */
  readonly #counts = new Map<string, PodCount>()
  /** Counts for a single namespace, by namespace. */
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
