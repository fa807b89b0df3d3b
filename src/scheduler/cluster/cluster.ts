/**
 * The scheduler's cache: nodes with their pods, including assumed ones. A pod counts from its assumption on, before
 * the API server has the binding. A decision runs synchronously, so it sees one consistent state without a copy.
 */
import type { Node } from '#apis/core/v1.ts'
import type { Labels } from '#meta/labels.ts'
import { claimKeysOf } from '#model/volumes/volumes.ts'

import { ExistingAffinityTerms } from './existing-affinity-terms.ts'
import { ImageSpread } from './image-spread.ts'
import { bump, NodeInfo } from './node-info.ts'
import { NodeLabelCounts } from './node-label-counts.ts'
import { NodeOrder, zoneOf } from './node-order.ts'
import { PodCounts } from './pod-counts.ts'
import { PodGroupMembers } from './pod-groups.ts'
import type { PodInfo } from './pod-info.ts'

interface PlacedPod {
  readonly pod: PodInfo
  readonly node: string
  /** Assumed: the API server has not confirmed the binding yet. */
  readonly isAssumed: boolean
}

export class Cluster {
  /** Includes nodes that are known only through their pods. */
  readonly #nodes = new Map<string, NodeInfo>()
  readonly #order = new NodeOrder<NodeInfo>()
  readonly #placed = new Map<string, PlacedPod>()
  readonly #freeSlots: number[] = []
  /** The number of pods that use a claim, by its key. */
  readonly #claims = new Map<string, number>()
  readonly counts: PodCounts = new PodCounts(this.#nodes)
  readonly affinityTerms: ExistingAffinityTerms = new ExistingAffinityTerms()
  readonly groups: PodGroupMembers = new PodGroupMembers()
  readonly images: ImageSpread = new ImageSpread()
  readonly labelCounts: NodeLabelCounts = new NodeLabelCounts(() => this.nodes)
  readonly #labelsOfNamespace: (name: string) => Labels

  constructor(labelsOfNamespace: (name: string) => Labels) {
    this.#labelsOfNamespace = labelsOfNamespace
  }

  /** In the order in which searches visit them. */
  get nodes(): readonly NodeInfo[] {
    return this.#order.list()
  }

  /** Undefined if the Node object does not exist. */
  node(name: string): NodeInfo | undefined {
    const info = this.#nodes.get(name)
    return info?.node === undefined ? undefined : info
  }

  /** Whether every node has the label. */
  isEverywhere(key: string): boolean {
    return this.labelCounts.of(key).total === this.nodes.length
  }

  namespaceLabels(name: string): Labels {
    return this.#labelsOfNamespace(name)
  }

  get podCount(): number {
    return this.#placed.size
  }

  get assumedCount(): number {
    let count = 0
    for (const { isAssumed } of this.#placed.values()) if (isAssumed) count++
    return count
  }

  setNode(node: Node): void {
    const info = this.#nodeOf(node.metadata.name ?? '')
    const [from, to] = [info.labels, node.metadata.labels]
    const zone = info.node === undefined ? undefined : zoneOf(from)
    this.images.replace(info.name, node.status.images)
    info.describe(node)
    // A changed node keeps its position.
    if (zone !== zoneOf(to)) {
      if (zone !== undefined) this.#order.delete(info.name, zone)
      this.#order.set(info.name, zoneOf(to), info)
    }
    this.#moved(info.name, from, to)
  }

  /** Invalidates everything that is cached for nodes. */
  touchNodes(): void {
    for (const info of this.nodes) info.touch()
  }

  removeNode(name: string): void {
    const info = this.#nodes.get(name)
    if (info?.node === undefined) return
    const { labels } = info
    this.#order.delete(name, zoneOf(labels))
    this.images.replace(name, undefined)
    info.describe(undefined)
    this.#moved(name, labels, undefined)
    this.#forgetIfEmpty(info)
  }

  /** Records a pod that the API server has bound. Ends its assumption. */
  setPod(pod: PodInfo, node: string): void {
    this.#unplace(pod.uid)
    this.#place({ pod, node, isAssumed: false })
  }

  removePod(uid: string): void {
    this.#unplace(uid)
  }

  /** Assumes the pod on the node. */
  assume(pod: PodInfo, node: string): void {
    this.#place({ pod, node, isAssumed: true })
  }

  /** Ends an assumption. Does nothing if the API server has bound the pod. */
  forget(uid: string): void {
    if (this.#placed.get(uid)?.isAssumed === true) this.#unplace(uid)
  }

  /** Runs `look` as if the pod were not in the cluster. */
  without<T>(uid: string, look: () => T): T {
    const placed = this.#placed.get(uid)
    if (placed === undefined) return look()
    this.#unplace(uid)
    try {
      return look()
    } finally {
      this.#place(placed)
    }
  }

  /** Whether a pod with a node uses the claim. */
  isClaimInUse(key: string): boolean {
    return this.#claims.has(key)
  }

  isAssumed(uid: string): boolean {
    return this.#placed.get(uid)?.isAssumed === true
  }

  placed(uid: string): string | undefined {
    return this.#placed.get(uid)?.node
  }

  /** The pod as it was when it was placed or last updated. */
  placedPod(uid: string): PodInfo | undefined {
    return this.#placed.get(uid)?.pod
  }

  #place(placed: PlacedPod): void {
    const { pod, node } = placed
    const info = this.#nodeOf(node)
    this.#placed.set(pod.uid, placed)
    info.add(pod)
    this.#countClaims(pod, 1)
    this.counts.placed(pod, info, 1)
    this.affinityTerms.placed(pod, info, 1)
    this.groups.placed(pod, 1)
  }

  #unplace(uid: string): void {
    const placed = this.#placed.get(uid)
    if (placed === undefined) return
    const info = this.#nodeOf(placed.node)
    this.#placed.delete(uid)
    info.remove(placed.pod)
    this.#countClaims(placed.pod, -1)
    this.counts.placed(placed.pod, info, -1)
    this.affinityTerms.placed(placed.pod, info, -1)
    this.groups.placed(placed.pod, -1)
    this.#forgetIfEmpty(info)
  }

  #countClaims({ pod }: PodInfo, by: 1 | -1): void {
    if (pod.spec.volumes !== undefined) for (const key of claimKeysOf(pod)) bump(this.#claims, key, by)
  }

  /** Also for a deleted node; labels that are gone are undefined. */
  #moved(name: string, from: Labels, to: Labels): void {
    this.labelCounts.moved(from, to)
    this.counts.moved(name, from, to)
    this.affinityTerms.moved(name, from, to)
  }

  #nodeOf(name: string): NodeInfo {
    const known = this.#nodes.get(name)
    if (known !== undefined) return known
    const made = new NodeInfo(name, this.#freeSlots.pop() ?? this.#nodes.size)
    this.#nodes.set(name, made)
    return made
  }

  #forgetIfEmpty(info: NodeInfo): void {
    if (info.node !== undefined || info.pods.size > 0) return
    this.#nodes.delete(info.name)
    this.#freeSlots.push(info.slot)
  }
}
