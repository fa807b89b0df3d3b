/**
 * A node with the sums of its pods. `generation` increases with every change and validates caches. An entry may exist
 * before the Node object, because a pod can arrive first.
 */
import type { Node } from '#apis/core/v1.ts'
import type { Labels } from '#meta/labels.ts'

import { addAmounts, type Amounts, amountsOfList, copyAmounts, noAmounts } from './amounts.ts'
import type { HostPort, PodInfo } from './pod-info.ts'

let generations = 0

export class NodeInfo {
  readonly name: string
  /** The index of this node in per-node arrays. */
  readonly slot: number
  generation: number = ++generations
  node: Node | undefined
  allocatable: Amounts = noAmounts()
  maxPods = 0
  readonly pods: Map<string, PodInfo>
  requested: Amounts
  /** Includes defaults for missing requests, see `PodInfo.likely`. */
  likely: Amounts
  /** The number of users of a port, by protocol, address and number. */
  readonly ports: Map<string, number>

  constructor(name: string, slot: number, from?: NodeInfo) {
    this.name = name
    this.slot = slot
    this.pods = new Map(from?.pods)
    this.requested = from === undefined ? noAmounts() : copyAmounts(from.requested)
    this.likely = from === undefined ? noAmounts() : copyAmounts(from.likely)
    this.ports = new Map(from?.ports)
    if (from === undefined) return
    this.node = from.node
    this.allocatable = from.allocatable
    this.maxPods = from.maxPods
  }

  get labels(): Labels {
    return this.node?.metadata.labels
  }

  /** A copy for simulation. */
  clone(): NodeInfo {
    return new NodeInfo(this.name, this.slot, this)
  }

  touch(): void {
    this.generation = ++generations
  }

  describe(node: Node | undefined): void {
    this.generation = ++generations
    this.node = node
    this.allocatable = amountsOfList(node?.status.allocatable)
    this.maxPods = this.allocatable.others?.get('pods') ?? 0
  }

  add(pod: PodInfo): void {
    this.pods.set(pod.uid, pod)
    this.#count(pod, 1)
  }

  remove(pod: PodInfo): void {
    const existing = this.pods.get(pod.uid)
    if (existing === undefined) return
    this.pods.delete(pod.uid)
    this.#count(existing, -1)
  }

  /** Whether any port is taken. The address 0.0.0.0 conflicts with every address. */
  hasPortConflict(wanted: readonly HostPort[]): boolean {
    if (this.ports.size === 0) return false
    return wanted.some(({ protocol, ip, port }) => {
      if (ip !== EVERYWHERE)
        return this.ports.has(portKey(protocol, ip, port)) || this.ports.has(portKey(protocol, EVERYWHERE, port))
      const suffix = portKey(protocol, '', port)
      for (const key of this.ports.keys()) if (key.endsWith(suffix)) return true
      return false
    })
  }

  #count(pod: PodInfo, sign: 1 | -1): void {
    this.generation = ++generations
    addAmounts(this.requested, pod.requests, sign)
    addAmounts(this.likely, pod.likely, sign)
    for (const { protocol, ip, port } of pod.ports) bump(this.ports, portKey(protocol, ip, port), sign)
  }
}

const EVERYWHERE = '0.0.0.0'

function portKey(protocol: string, ip: string, port: number): string {
  return `${ip} ${protocol} ${port}`
}

/** Removes entries that reach zero. */
export function bump<K>(counts: Map<K, number>, key: K, by: number): void {
  const count = (counts.get(key) ?? 0) + by
  if (count === 0) counts.delete(key)
  else counts.set(key, count)
}
