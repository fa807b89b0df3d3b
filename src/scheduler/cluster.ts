/**
 * The cluster as the scheduler knows it: nodes with what is on them, and what is about to be. A pod counts from the moment
 * it is assumed to be on its node, before the API server has heard of it, so that the next decision reckons with it. A
 * decision is made in one go, without waiting for anybody: what it looks at cannot change meanwhile.
 */
import type { Node } from '#apis/core/v1.ts'
import type { Labels } from '#meta/labels.ts'
import { claimKeysOf } from '#model/volumes.ts'

import { ImageSpread } from './image-spread.ts'
import { bump, NodeInfo } from './node-info.ts'
import { NodeOrder, zoneOf } from './node-order.ts'
import { NodePlaces } from './node-places.ts'
import { PodCounts } from './pod-counts.ts'
import { PodGroupMembers } from './pod-groups.ts'
import type { PodInfo } from './pod-info.ts'
import { PodWishes } from './pod-wishes.ts'

interface Placed {
  readonly pod: PodInfo
  readonly node: string
  /** The API server has not said so yet. */
  readonly isAssumed: boolean
}

export class Cluster {
  /** Also those that are unknown but for the pods on them. */
  readonly #nodes = new Map<string, NodeInfo>()
  readonly #order = new NodeOrder<NodeInfo>()
  readonly #placed = new Map<string, Placed>()
  readonly #freeSlots: number[] = []
  /** How many pods use a claim, by its key. */
  readonly #claims = new Map<string, number>()
  readonly counts: PodCounts = new PodCounts(this.#nodes)
  readonly wishes: PodWishes = new PodWishes()
  readonly groups: PodGroupMembers = new PodGroupMembers()
  readonly images: ImageSpread = new ImageSpread()
  readonly places: NodePlaces = new NodePlaces(() => this.nodes)
  readonly #labelsOfNamespace: (name: string) => Labels

  constructor(labelsOfNamespace: (name: string) => Labels) {
    this.#labelsOfNamespace = labelsOfNamespace
  }

  /** In the order in which they are looked at. */
  get nodes(): readonly NodeInfo[] {
    return this.#order.list()
  }

  /** One that exists. */
  node(name: string): NodeInfo | undefined {
    const info = this.#nodes.get(name)
    return info?.node === undefined ? undefined : info
  }

  /** Whether every node has the label. */
  isEverywhere(key: string): boolean {
    return this.places.of(key).total === this.nodes.length
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
    // A node that only changes keeps its place.
    if (zone !== zoneOf(to)) {
      if (zone !== undefined) this.#order.delete(info.name, zone)
      this.#order.set(info.name, zoneOf(to), info)
    }
    this.#moved(info.name, from, to)
  }

  /** Whatever is remembered of nodes no longer holds. */
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

  /** It is there, as the API server says. Whatever was assumed of it is over. */
  setPod(pod: PodInfo, node: string): void {
    this.#unplace(pod.uid)
    this.#place({ pod, node, isAssumed: false })
  }

  removePod(uid: string): void {
    this.#unplace(uid)
  }

  /** It will be there. */
  assume(pod: PodInfo, node: string): void {
    this.#place({ pod, node, isAssumed: true })
  }

  /** It will not. Nothing happens when the API server has said otherwise. */
  forget(uid: string): void {
    if (this.#placed.get(uid)?.isAssumed === true) this.#unplace(uid)
  }

  /** Looks at the cluster as if a pod were not there. */
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

  /** Whether a pod that has a node uses it. */
  isClaimInUse(key: string): boolean {
    return this.#claims.has(key)
  }

  isAssumed(uid: string): boolean {
    return this.#placed.get(uid)?.isAssumed === true
  }

  placed(uid: string): string | undefined {
    return this.#placed.get(uid)?.node
  }

  /** As it was when it was placed, or last heard of. */
  podWithPlace(uid: string): PodInfo | undefined {
    return this.#placed.get(uid)?.pod
  }

  #place(placed: Placed): void {
    const { pod, node } = placed
    const info = this.#nodeOf(node)
    this.#placed.set(pod.uid, placed)
    info.add(pod)
    this.#countClaims(pod, 1)
    this.counts.placed(pod, info, 1)
    this.wishes.placed(pod, info, 1)
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
    this.wishes.placed(placed.pod, info, -1)
    this.groups.placed(placed.pod, -1)
    this.#forgetIfEmpty(info)
  }

  #countClaims({ pod }: PodInfo, by: 1 | -1): void {
    if (pod.spec.volumes !== undefined) for (const key of claimKeysOf(pod)) bump(this.#claims, key, by)
  }

  /** Of a node that exists or did; labels that are gone are undefined. */
  #moved(name: string, from: Labels, to: Labels): void {
    this.places.moved(from, to)
    this.counts.moved(name, from, to)
    this.wishes.moved(name, from, to)
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
